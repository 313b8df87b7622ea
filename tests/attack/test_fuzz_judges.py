"""What the fuzzers count as a fault."""

import asyncio
import sqlite3
from collections import deque
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from attack.fuzz import afterwards, networks, readers
from attack.fuzz.findings import Report
from attack.fuzz.two_protocols import Done, difference, received
from attack.servers import Server
from attack.wire import KeptConnection, NoAnswer, Response, request_bytes
from sandbox_sim.ports.network import Notification
from sandbox_sim.records.reports import Outcome
from tests.kit.http_servers import listening
from tests.kit.requests import shape_problem

RULE = {"x-sandbox-rule": "D5"}
BAD_REQUEST = b'{"response_code": "400", "response_message": "Bad request"}'
ANSWER = b"HTTP/1.1 202 Accepted\r\nDate: now\r\n\r\n{}"
REFUSAL = b"HTTP/1.1 400 Bad Request\r\nDate: now\r\n\r\n{}"
PIECE = b"POST /make_payment"
CLOSES = b"\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (500, RULE, BAD_REQUEST),
        (202, RULE, BAD_REQUEST),
        (400, {}, BAD_REQUEST),
        (400, RULE, b"no JSON"),
        (400, RULE, b"[]"),
        (400, RULE, b'{"response_code": "500", "response_message": "x"}'),
        (400, RULE, b'{"response_code": 400, "response_message": "x"}'),
        (400, RULE, b'{"response_code": "400", "response_message": " "}'),
        (400, RULE, b'{"response_code": "400", "response_message": "x", "n": NaN}'),
    ],
)
def test_an_answer_in_another_shape_than_the_interface_has(
    status: int, headers: dict[str, str], body: bytes
) -> None:
    assert shape_problem(400, RULE, BAD_REQUEST, "/make_payment") is None
    assert shape_problem(status, headers, body, "/make_payment") is not None


def test_an_sms_answer_with_another_status_than_200() -> None:
    assert shape_problem(400, RULE, BAD_REQUEST, "/sms/send") is not None


class TestDifference:
    """Between the answers of our protocol and of aiohttp's."""

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
        later = ours.replace(b"now", b"later")

        assert difference(Done(ours, frozenset()), Done(later, frozenset()), None) is None
        assert difference(Done(ours, frozenset()), Done(theirs, frozenset()), None) is not None

    def test_so_is_what_was_done(self) -> None:
        done = frozenset({("smuggled", "202")})

        assert difference(Done(ANSWER, done), Done(ANSWER, frozenset()), None) is not None

    def test_whole_requests_have_one_answer_each(self) -> None:
        twice = Done(ANSWER + ANSWER, frozenset())

        assert difference(twice, twice, 3) == "2 answers [202, 202] to 3 requests"

    def test_a_refusal_that_closes_the_connection_ends_the_answers(self) -> None:
        refused = Done(ANSWER + REFUSAL.replace(b"\r\n\r\n", CLOSES), frozenset())
        accepted = Done(ANSWER.replace(b"\r\n\r\n", CLOSES), frozenset())

        assert difference(refused, refused, 3) is None
        assert difference(refused, refused, 1) == "2 answers [202, 400] to 1 requests"
        assert difference(accepted, accepted, 3) == "1 answers [202] to 3 requests"


async def test_a_request_in_many_pieces_may_take_longer_than_the_silence() -> None:
    class Reader(asyncio.StreamReader):
        async def read(self, n: int = -1) -> bytes:
            if unsent:
                unsent.popleft()  # a piece is sent while nothing comes
                await asyncio.Event().wait()
            return await super().read(n)

    unsent, reader = deque([PIECE] * 3), Reader()
    reader.feed_data(ANSWER)
    reader.feed_eof()

    assert await received(reader, unsent, silence_s=0.001) == ANSWER


async def test_an_answer_that_does_not_come_ends_the_wait() -> None:
    assert await received(asyncio.StreamReader(), [PIECE], silence_s=0.001) == b""


async def test_a_stream_takes_its_connection_with_it() -> None:
    """The request after it goes over another connection, because the stream does not end."""

    async def events(request: web.Request) -> web.StreamResponse:
        await web.StreamResponse().prepare(request)
        await asyncio.Event().wait()
        raise AssertionError

    async with listening(web.get("/events", events)) as url:
        connection = KeptConnection(urlsplit(url).port or 0)
        for _ in range(2):
            assert (await connection.send(request_bytes("/events", method=b"GET"))).status == 200
        connection.close()


async def test_a_request_without_an_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server("a server", tmp_path / "log", ())
    monkeypatch.setattr(server, "url", "http://127.0.0.1:1")  # nothing listens there

    with pytest.raises(NoAnswer, match=r"^POST /_sandbox/clock/reset: no connection"):
        await server.ask("/_sandbox/clock/reset", {})


def test_a_5xx_to_a_payment_that_was_sent() -> None:
    not_sent = Response(500, {"x-sandbox-rule": "D39"}, b"")
    sent = Response(500, {"x-sandbox-rule": "errors"}, b"")

    assert networks.problem_with("", not_sent) is None
    assert networks.problem_with("", sent) == "HTTP status 500: b''"


def test_a_result_of_an_adapter_that_cannot_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox_sim.ports.network._clean", lambda _said: None)
    result = Notification(Outcome.UNKNOWN, reason="x" * 501, reference="\ud83d")

    assert sorted(readers.problems_with(result)) == [
        "reason has 501 characters",
        "reference has half a character",
    ]


async def test_every_adapter_is_tried() -> None:
    report = await readers.fuzz(seed=1, seconds=0.01)

    assert report.tried > 200
    assert report.holds


async def test_a_job_that_failed_is_found_in_the_store(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite3"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE jobs (kind TEXT, subject TEXT, failures INTEGER)")
        database.execute("INSERT INTO jobs VALUES ('deliver', 'c1', 2), ('settle', 't1', 0)")
        database.commit()

    place = afterwards.Place("sqlite", f"sqlite:{file}")

    assert await afterwards.failed_jobs(place) == ["('deliver', 'c1', 2)"]


def test_a_report_prints_the_bytes_and_fails_where_nothing_was_tried(tmp_path: Path) -> None:
    report = Report("bodies", tried=1)
    report.add("HTTP status 500", b"POST /\x00")

    assert not report.holds
    assert not Report("bodies").holds
    lines = "\n".join(report.lines(tmp_path))
    assert lines.startswith("FAIL  bodies: 1 problems in 1 tried (bound 0)")
    assert (tmp_path / "finding-0.bin").read_bytes() == b"POST /\x00"
