"""What the fuzzers count as a fault; the same seed makes the same bytes."""

import json
from pathlib import Path
from random import Random

import pytest

from attack.fuzz import values
from attack.fuzz.byte_streams import stream
from attack.fuzz.findings import Report
from attack.fuzz.shape import problem_with
from attack.fuzz.two_protocols import Done, difference
from attack.wire import Response

RULE = {"x-sandbox-rule": "D5"}
BAD_REQUEST = b'{"response_code": "400", "response_message": "Bad request"}'
ANSWER = b"HTTP/1.1 202 Accepted\r\nDate: now\r\n\r\n{}"
REFUSAL = b"HTTP/1.1 400 Bad Request\r\nDate: now\r\n\r\n{}"


class TestShape:
    def test_a_refusal_of_the_interface_is_no_fault(self) -> None:
        assert problem_with(Response(400, RULE, BAD_REQUEST), "/make_payment") is None

    @pytest.mark.parametrize(
        "answer",
        [
            Response(500, RULE, BAD_REQUEST),
            Response(202, RULE, BAD_REQUEST),
            Response(400, {}, BAD_REQUEST),
            Response(400, RULE, b"no JSON"),
            Response(400, RULE, b"[]"),
            Response(400, RULE, b'{"response_code": "500", "response_message": "x"}'),
            Response(400, RULE, b'{"response_code": 400, "response_message": "x"}'),
            Response(400, RULE, b'{"response_code": "400", "response_message": " "}'),
            Response(400, RULE, b'{"response_code": "400", "response_message": "x", "n": NaN}'),
        ],
    )
    def test_all_else_is(self, answer: Response) -> None:
        assert problem_with(answer, "/make_payment") is not None

    def test_sms_answers_have_status_200(self) -> None:
        assert problem_with(Response(400, RULE, BAD_REQUEST), "/sms/send") is not None


class TestDifference:
    def test_there_is_none_in_dates(self) -> None:
        later = ANSWER.replace(b"now", b"later")

        assert difference(Done(ANSWER, frozenset()), Done(later, frozenset()), 1) is None

    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            (ANSWER + REFUSAL, REFUSAL + ANSWER),
            (ANSWER, ANSWER + ANSWER),
            (ANSWER, b""),
            (ANSWER, ANSWER.replace(b"{}", b"[]")),
        ],
    )
    def test_count_order_and_content_are_compared(self, ours: bytes, theirs: bytes) -> None:
        assert difference(Done(ours, frozenset()), Done(theirs, frozenset()), None) is not None

    def test_so_is_what_was_done(self) -> None:
        done = frozenset({("smuggled", "202")})

        assert difference(Done(ANSWER, done), Done(ANSWER, frozenset()), None) is not None

    def test_whole_requests_have_one_answer_each(self) -> None:
        twice = Done(ANSWER + ANSWER, frozenset())

        assert difference(twice, twice, 3) == "2 answers [202, 202] to 3 requests"


class TestReport:
    def test_the_bytes_are_printed_and_kept(self, tmp_path: Path) -> None:
        report = Report("bodies", tried=1)
        report.add("HTTP status 500", b"POST /\x00")

        assert not report.holds
        lines = "\n".join(report.lines(tmp_path))
        assert lines.startswith("FAIL  bodies: 1 problems in 1 tried (bound 0)")
        assert r"b'POST /\x00'" in lines
        assert (tmp_path / "finding-0.bin").read_bytes() == b"POST /\x00"

    def test_where_nothing_was_tried_nothing_holds(self) -> None:
        assert not Report("bodies").holds
        assert Report("bodies", tried=1).holds


@pytest.mark.parametrize("seed", range(3))
def test_a_seed_makes_the_same_again(seed: int) -> None:
    assert stream(Random(seed), "s") == stream(Random(seed), "s")
    assert values.request(Random(seed)) == values.request(Random(seed))


def test_streams_are_alike_for_every_service() -> None:
    for seed in range(300):
        each = stream(Random(seed), "s")
        assert b"".join(each.pieces(b"61")) == each.of_service(b"61")
        assert max(map(len, each.pieces(b"61"))) <= 32_768
        assert each.of_service(b"61").replace(b"61", b"62") == each.of_service(b"62").replace(
            b"61", b"62"
        )


def test_bodies_are_well_formed_and_spoiled() -> None:
    def is_json(raw: bytes) -> bool:
        try:
            json.loads(raw)
        except ValueError:
            return False
        return True

    made = [is_json(values.request(Random(seed))[1]) for seed in range(300)]
    assert 50 < sum(made) < 290
