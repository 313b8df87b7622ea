"""What the attacks and the fuzzers count as a fault."""

import asyncio
import re
import sqlite3
from collections import deque
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from attack import results, secret_values
from attack.__main__ import ATTACKS
from attack.fuzz import afterwards, networks, readers
from attack.fuzz.__main__ import KINDS
from attack.fuzz.findings import Report
from attack.fuzz.two_protocols import Done, difference, received
from attack.servers import Server
from attack.wire import KeptConnection, NoAnswer, Response, request_bytes
from sandbox_sim.ports.network import Notification
from sandbox_sim.records.reports import Outcome
from tests.kit.http_servers import listening
from tests.kit.requests import shape_problem

SECRET = secret_values.Secret("4111111111111111", "collection.reference")
RULE = {"x-sandbox-rule": "D5"}
BAD_REQUEST = b'{"response_code": "400", "response_message": "Bad request"}'
ANSWER = b"HTTP/1.1 202 Accepted\r\nDate: now\r\n\r\n{}"
REFUSAL = b"HTTP/1.1 400 Bad Request\r\nDate: now\r\n\r\n{}"
PIECE = b"POST /make_payment"
CLOSES = b"\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (results.at_most("a wait", 0.5, 0.5, "s"), "held: a wait 0.50 s (bound <= 0.50 s)"),
        (results.at_most("a wait", 1.2, 1, "s"), "FAIL  a wait 1.20 s (bound <= 1.00 s)"),
        (results.at_least("taken", 20, 20), "held: taken 20 (bound >= 20)"),
        (results.at_least("taken", 19, 20), "FAIL  taken 19 (bound >= 20)"),
        (results.within("called after", None, 30), "FAIL  called after never (bound <= 30.00 s)"),
        (results.none_of("let in", []), "held: let in 0 (bound 0)"),
        (results.none_of("let in", ["HTTP 200"], 9), "FAIL  let in 1 of 9 (bound 0)"),
    ],
)
def test_a_result_line_says_whether_the_figure_keeps_its_bound(
    result: results.Result, line: str
) -> None:
    assert result.line == line


def test_a_secret_is_found_in_every_encoding() -> None:
    """Some addresses may be in the SQLite file, but not in the log."""
    for encode in secret_values.WAYS.values():
        assert [*secret_values.found_in(f"x{encode(SECRET.text)}y", [SECRET], "the log")]
    secret = replace(SECRET, kept_in_file=True)
    assert [*secret_values.found_in(SECRET.text, [secret], "the SQLite file")] == []
    assert [*secret_values.found_in(SECRET.text, [secret], "the log")]


def test_every_attack_and_fuzzer_has_a_row_in_the_security_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z][a-z-]+)` \|", page, re.MULTILINE)

    assert rows == [*ATTACKS, *KINDS]


def test_an_answer_in_another_shape_than_the_interface_has_is_a_problem() -> None:
    path = "/make_payment"
    assert shape_problem(400, RULE, BAD_REQUEST, path) is None
    assert shape_problem(400, RULE, BAD_REQUEST, "/sms/send") is not None, "SMS paths answer 200"
    assert shape_problem(500, RULE, BAD_REQUEST, path) is not None
    assert shape_problem(202, RULE, BAD_REQUEST, path) is not None
    assert shape_problem(400, {}, BAD_REQUEST, path) is not None
    for body in (
        *(b"no JSON", b"[]", b'{"response_code": "500", "response_message": "x"}'),
        *(BAD_REQUEST.replace(b'"400"', b"400"), BAD_REQUEST.replace(b"Bad request", b" ")),
        BAD_REQUEST.replace(b"}", b', "n": NaN}'),
    ):
        assert shape_problem(400, RULE, body, path) is not None, body


def test_a_difference_from_the_protocol_of_aiohttp_is_found() -> None:
    """The count, order, content and effects count. A refusal that closes ends the answers."""
    ours = Done(ANSWER + REFUSAL, frozenset())
    later = Done(ours.answers.replace(b"now", b"later"), frozenset())
    assert difference(ours, later, None) is None
    for theirs in (REFUSAL + ANSWER, ANSWER, b"", ours.answers.replace(b"{}", b"[]")):
        assert difference(ours, Done(theirs, frozenset()), None) is not None
    smuggled = frozenset({("smuggled", "202")})
    assert difference(ours, Done(ours.answers, smuggled), None) is not None

    twice = Done(ANSWER + ANSWER, frozenset())
    refused = Done(ANSWER + REFUSAL.replace(b"\r\n\r\n", CLOSES), frozenset())
    accepted = Done(ANSWER.replace(b"\r\n\r\n", CLOSES), frozenset())
    assert difference(twice, twice, 3) == "2 answers [202, 202] to 3 requests"
    assert difference(refused, refused, 3) is None
    assert difference(refused, refused, 1) == "2 answers [202, 400] to 1 requests"
    assert difference(accepted, accepted, 3) == "1 answers [202] to 3 requests"


def test_a_5xx_is_a_problem_if_the_payment_was_sent() -> None:
    not_sent = Response(500, {"x-sandbox-rule": "D39"}, b"")
    sent = Response(500, {"x-sandbox-rule": "errors"}, b"")

    assert networks.problem_with("", not_sent) is None
    assert networks.problem_with("", sent) == "HTTP status 500: b''"


def test_a_result_that_cannot_be_stored_is_a_problem_of_its_adapter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sandbox_sim.ports.network._clean", lambda _said: None)
    result = Notification(Outcome.UNKNOWN, reason="x" * 501, reference="\ud83d")

    assert sorted(readers.problems_with(result)) == [
        "reason has 501 characters",
        "reference has half a character",
    ]


async def test_the_fuzzer_of_adapters_tries_them_and_finds_no_problem() -> None:
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


def test_a_report_saves_the_bytes_and_fails_if_nothing_was_tried(tmp_path: Path) -> None:
    report = Report("bodies", tried=1)
    report.add("HTTP status 500", b"POST /\x00")

    assert not report.holds
    assert not Report("bodies").holds
    lines = "\n".join(report.lines(tmp_path))
    assert lines.startswith("FAIL  bodies: 1 problems in 1 tried (bound 0)")
    assert (tmp_path / "finding-0.bin").read_bytes() == b"POST /\x00"


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


async def test_the_wait_for_an_answer_ends_after_the_silence() -> None:
    assert await received(asyncio.StreamReader(), [PIECE], silence_s=0.001) == b""


async def test_a_request_after_a_stream_uses_another_connection() -> None:
    """The stream does not end, so its connection cannot be used again."""

    async def events(request: web.Request) -> web.StreamResponse:
        await web.StreamResponse().prepare(request)
        await asyncio.Event().wait()
        raise AssertionError

    async with listening(web.get("/events", events)) as url:
        connection = KeptConnection(urlsplit(url).port or 0)
        for _ in range(2):
            assert (await connection.send(request_bytes("/events", method=b"GET"))).status == 200
        connection.close()


async def test_a_request_without_an_answer_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server("a server", tmp_path / "log", ())
    monkeypatch.setattr(server, "url", "http://127.0.0.1:1")  # nothing listens there

    with pytest.raises(NoAnswer, match=r"^POST /_sandbox/clock/reset: no connection"):
        await server.ask("/_sandbox/clock/reset", {})
