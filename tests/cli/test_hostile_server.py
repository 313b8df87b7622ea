"""A server at --endpoint-url that is not a gateway, or that sends hostile answers.

After any answer, a command ends with an exit code and without a traceback, and prints no control
character.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from aiohttp import web
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings, strategies as st

from sandbox_sim.cli import client, main, record_commands
from sandbox_sim.cli.client import RunningGateway, Unreachable
from sandbox_sim.cli.commands import listen as listen_command
from sandbox_sim.cli.compare import cases, sides
from sandbox_sim.records.callbacks import CallbackView
from sandbox_sim.records.inbox import InboxMessageView
from sandbox_sim.records.journal import RequestView
from sandbox_sim.records.messages import MessageView
from sandbox_sim.records.transactions import TransactionView
from tests.cli.every_command import COMMANDS, commands
from tests.cli.fake_servers import FakeServer, answering, http_server
from tests.cli.receivers import Listen, ask
from tests.kit.http_servers import listening

# A title, a cleared screen, one-byte CSI, the end of a line, the other direction of writing, half
# of an emoji.
HOSTILE = "\x1b]0;t\x07\x1b[2J\x9b31m\x85\u2028\u202e\ud83d\r\n\b"
WITHOUT_A_SERVER = frozenset(
    {
        *("compare", "config check", "config init", "config show", "demo", "explain", "openapi"),
        *("networks prove", "serve", "certify init", "certify run"),
    }
)
# `TestOtherClients` has these.
ELSEWHERE = frozenset({"doctor", "listen"})
WHY = "--reason r --by a"
TRIED = [
    *(line for line in COMMANDS.split("\n") if line and line not in WITHOUT_A_SERVER),
    "backup",
    f"ledger adjust 55 10 --debit clearing --credit suspense {WHY}",
    f"ledger close 55 --until 2026-01-01 {WHY}",
    f"ledger resolve 55 T1 --to clearing {WHY}",
    f"ledger reverse 5 {WHY}",
    "ledger statement 55",
    "ledger suspense",
    "networks notifications",
    "requests show R1",
    "sms find",
    "sms show M1",
    "callbacks find",
    "transactions ask 55 T1",
    "transactions find",
    f"transactions refund 55 T1 {WHY}",
    "transactions wait --timeout 0",
    "trigger collect --timeout 0",
    "trigger bulk-sms --timeout 0",
    "transactions list --waiting",
    "callbacks list --state failed",
    "callbacks show C1",
    "callbacks retry C1",
    "callbacks resend C1",
    "inbox wait trigger --timeout 0",
    "inbox clear trigger",
    "requests clear",
    "networks list",
    "networks check",
    "reconcile mtn {statement}",
    "ledger topup 55 10 --mode P",
]
# Of each command; the profile `wide` tries as many as elsewhere.
EXAMPLES = 4 if settings.get_current_profile_name() == "suite" else settings().max_examples
# One case of each kind of answer; a comparison that finds differences sends all of them many times.
A_FEW_CASES = {
    *("01-collection-success", "02-card-success", "07-status-successful", "08-balance-success"),
    *("09-sms-success", "10-bulk-success", "11-history-sent", "12-sms-balance-success"),
}
# Our own colours and bold type; HOSTILE has none of these.
_STYLES = re.compile(r"\x1b\[(?:0|1|3[0-7]|9[0-7])m")


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with http_server() as server:
        yield server


@pytest.fixture(scope="module")
def statement(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("statement") / "statement.csv"
    file.write_text("reference,amount\nR1,10\n")
    return file


@pytest.fixture(autouse=True)
def _few_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_commands, "_MAX_PAGES", 5)


def test_every_command_that_asks_a_server_is_tried() -> None:
    not_tried = {
        name
        for name, command in commands(main)
        if not isinstance(command, click.Group)
        and not any(f"{line} ".startswith(f"{name} ") for line in TRIED)
    }

    assert not_tried == (WITHOUT_A_SERVER - {"config show"}) | ELSEWHERE


def run(url: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["--endpoint-url", url, *words], color=True)


def assert_harmless(result: Result) -> None:
    """Assert that a command ended with an exit code and printed no control character."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    # 2 if, by the answer, an argument names nothing, such as a network.
    assert result.exit_code in {0, 1, 2}, result.output
    assert "Traceback" not in result.output
    for text in (result.stdout, result.stderr):
        assert [c for c in _STYLES.sub("", text) if not c.isprintable() and c != "\n"] == []


def names() -> list[str]:
    """The names of fields and lists that commands read."""
    views = (RequestView, TransactionView, CallbackView, InboxMessageView, MessageView)
    fields = {name for view in views for name in view.__annotations__}
    return sorted(
        {
            *fields,
            *("requests", "transactions", "callbacks", "sms", "messages", "overrides", "faults"),
            *("networks", "attempts", "postings", "balances", "snapshots", "people", "fewer"),
            *("ran", "live", "violations", "agrees", "waiting", "next", "dropped", "count"),
            *("now", "frozen", "shift_s", "response_code", "response_data", "response_message"),
            *("match", "outcome", "fault", "times", "used", "every", "probability", "delay_ms"),
            *("health", "ok", "detail", "breaker", "state", "operations", "routes", "name"),
            *("records", "service_id", "deleted", "error", "message", "payments", "seed"),
            *("reference", "network_id", "amount", "currency", "operation", "id"),
        }
    )


TEXTS = ("", "T1", "202", "002", "failed", "2026-01-01T09:00:00Z", HOSTILE)
NUMBERS = (0, 1, -1, 10**30, 0.5, 1e308, float("inf"), float("nan"))
# Values that a command may find in place of the expected ones, or may read next.
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [
        *TEXTS,
        *NUMBERS,
        *(None, True, False, [], {}, [[]], [None], [1, HOSTILE]),
        [{}],
        [{"at": HOSTILE, "verdict": HOSTILE, HOSTILE: [{HOSTILE: HOSTILE}]}],
        {HOSTILE: HOSTILE},
        {"ok": True, "detail": HOSTILE, "state": HOSTILE},
        {"min": HOSTILE, "max": 10**400},
        {"status": HOSTILE, "response_code": None},
        {"fixed_ms": HOSTILE},
        {"agrees": True, "balances": [{}], "violations": [{}], "postings_checked": HOSTILE},
    ]
)
RECORDS = st.fixed_dictionaries(dict.fromkeys((*names(), HOSTILE), VALUES))
# A record with a list of records under every plural: most commands find what they read first.
DOCUMENTS = st.one_of(
    VALUES,
    RECORDS,
    st.builds(
        lambda outer, inner: {**outer, **{name: [inner] for name in names() if name[-1] == "s"}},
        RECORDS,
        RECORDS,
    ),
)


@pytest.mark.parametrize("command", TRIED)
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ]
)  # fmt: skip
@given(
    document=DOCUMENTS,
    status=st.sampled_from([200, 200, 200, 202, 400, 401, 404, 408, 500]),
    as_json=st.booleans(),
    header=st.sampled_from(TEXTS),
)
def test_a_command_ends_cleanly_after_any_json(
    server: FakeServer,
    statement: Path,
    command: str,
    document: Any,
    status: int,
    as_json: bool,
    header: str,
) -> None:
    value = header.replace("\r\n", "").encode("utf-8", "replace").decode("latin-1")
    server.answers(status, {"X-Sandbox-Why": value, "X-Sandbox-Rule": value}, json.dumps(document))
    words = command.format(statement=statement).split()

    assert_harmless(run(server.url, *(["--json"] if as_json else []), *words))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{",
        b'"\x1b[2J"',
        b"[" * 100_000,
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
        b"1" * 5_000,
        '{"requests": "\x9b31m"}'.encode(),
        b'{"requests":\r[]}',
        b"<html>",
    ],
    ids=range(11),
)
@pytest.mark.parametrize("words", [("requests", "list"), ("--json", "requests", "list")])
def test_a_command_ends_cleanly_after_any_body(
    server: FakeServer, words: tuple[str, ...], body: bytes
) -> None:
    server.answers(200, {}, body)

    assert_harmless(run(server.url, *words))


def test_json_of_a_server_keeps_its_meaning_when_it_is_printed(server: FakeServer) -> None:
    document = {"requests": [], HOSTILE: [HOSTILE, "Ɛyɛ 🙂"], "next": None}
    text = json.dumps(document, ensure_ascii=False)
    server.answers(200, {}, text.encode("utf-8", "backslashreplace"))

    result = run(server.url, "--json", "requests", "list")

    assert_harmless(result)
    assert json.loads(result.stdout) == document
    assert "Ɛyɛ 🙂" in result.stdout


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(server: FakeServer, status: int) -> None:
    server.answers(status, {"Location": "http://elsewhere.test/\x9b"}, "{}")

    for words in (("requests", "list"), ("trigger", "sms", "--no-wait")):
        result = run(server.url, *words)

        assert_harmless(result)
        assert result.exit_code == 1
        assert "redirects to http://elsewhere.test/" in result.stderr


def test_the_error_for_a_missing_field_names_the_server_and_the_field(
    server: FakeServer,
) -> None:
    server.answers(200, {}, b'{"requests": [{}], "next": null}')

    result = run(server.url, "requests", "list")

    assert result.exit_code == 1
    assert result.stderr == (
        f"{server.url} answers with fields that this version does not know (KeyError: 'at')\n"
    )


HEAD = b"HTTP/1.1 200 OK\r\n"


class TestRawAnswers:
    @pytest.mark.parametrize(
        ("parts", "endlessly"),
        [
            ((), b"HTTP/1.1 100 Continue\r\n\r\n"),
            ((HEAD, b"\r\n"), b" " * 65536),
            ((HEAD, b"Transfer-Encoding: chunked\r\n\r\n"), b"10000\r\n" + b" " * 65536 + b"\r\n"),
            ((HEAD, b"Content-Length: 99999999999\r\n\r\n"), b" " * 65536),
        ],
        ids=["heads", "body until the end", "chunks", "a length"],
    )
    def test_a_request_ends_although_the_answer_does_not(
        self, monkeypatch: pytest.MonkeyPatch, parts: tuple[bytes, ...], endlessly: bytes
    ) -> None:
        monkeypatch.setattr(client, "_MAX_BYTES", 1_000_000)

        with (
            answering(*parts, endlessly=endlessly) as (url, _),
            pytest.raises(Unreachable) as raised,
        ):
            RunningGateway(url).send("GET", "/", {}, timeout_s=0.5)

        # Python 3.14 counts heads itself.
        ends = "no answer within 0.5 s|larger|more than 100 interim responses"
        assert re.search(ends, str(raised.value))

    def test_a_list_without_an_end_is_read_up_to_the_page_limit(self, server: FakeServer) -> None:
        server.answers(200, {}, '{"callbacks": [{"id": "C1"}], "next": "C1"}')

        result = run(server.url, "callbacks", "resend", "--failed")

        assert_harmless(result)
        assert result.stderr == f"{server.url} has more than 5 pages of callbacks\n"

    def test_an_incomplete_answer_counts_as_no_answer(self) -> None:
        with answering(HEAD + b"Content-Length: 10\r\n\r\n{}") as (url, _):
            result = run(url, "requests", "list")

        assert_harmless(result)
        assert result.exit_code == 1
        assert "IncompleteRead" in result.stderr

    @pytest.mark.parametrize(
        "head",
        [
            b"\x1b[2J\x9b\r\n\r\n",
            b"HTTP/1.1 abc\x1b[2J\r\n\r\n",
            b"HTTP/9.9 200 OK\r\n\r\n",
            HEAD + b"X: " + b"x" * 70_000 + b"\r\n\r\n",
            HEAD + b"X: x\r\n" * 200 + b"\r\n",
            HEAD + b"Content-Length: \x1b[2J\r\n\r\n{}",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\x1b[2J\r\n",
        ],
        ids=range(7),
    )
    @pytest.mark.parametrize("words", [("requests", "list"), ("readyz",)])
    def test_a_command_ends_cleanly_after_an_answer_that_is_not_http(
        self, words: tuple[str, ...], head: bytes
    ) -> None:
        with answering(head) as (url, _):
            assert_harmless(run(url, *words))


GREETING = b'event: listening\ndata: {"listener": "L1", "shared": false}\n\n'


def forwarded(**fields: object) -> bytes:
    """A callback as a gateway sends it to a listener, with these fields changed."""
    data = {"number": 1, "url": HOSTILE, "headers": {}, "body": "{}", "timeout_s": 1, **fields}
    return f"event: callback\ndata: {json.dumps(data)}\n\n".encode()


async def listened(answer: web.Response) -> Result:
    """What `listen` does with a gateway that answers so to a listener."""

    async def clock(_request: web.Request) -> web.Response:
        return web.json_response({})

    async def streaming(_request: web.Request) -> web.Response:
        return answer

    routes = (web.get("/_sandbox/clock", clock), web.get("/_sandbox/listen", streaming))
    async with listening(*routes) as url:
        return await ask("listen", "--from", url, "--forward-to", "http://127.0.0.1:9/")


class TestOtherClients:
    """`listen`, `doctor` and `compare` have their own clients."""

    async def test_doctor_ends_cleanly_after_hostile_answers(self, listen: Listen) -> None:
        async def hostile(_request: web.Request) -> web.Response:
            return web.Response(status=500, reason="no", body=HOSTILE.encode("utf-8", "replace"))

        url = await listen(hostile)

        for words in ((), ("--json",)):
            assert_harmless(await ask(*words, "doctor", url))

    @pytest.mark.parametrize(
        ("words", "document"),
        [
            ((), {"response_code": HOSTILE, HOSTILE: HOSTILE, "response_data": [HOSTILE]}),
            (("--json",), {"response_code": 202, "response_data": {HOSTILE: {HOSTILE: None}}}),
            ((), [HOSTILE]),
        ],
        ids=range(3),
    )
    def test_compare_ends_cleanly_after_hostile_answers(
        self,
        server: FakeServer,
        monkeypatch: pytest.MonkeyPatch,
        words: tuple[str, ...],
        document: Any,
    ) -> None:
        few = [case for case in cases.load() if case.name in A_FEW_CASES]
        monkeypatch.setattr(cases, "load", lambda: few)
        server.answers(200, {"Content-Type": "application/json"}, json.dumps(document))

        result = run(server.url, *words, "compare", server.url, "--timeout", "0")

        assert_harmless(result)
        assert result.exit_code == 1

    @pytest.mark.parametrize(
        "stream",
        [
            b"event: listening\ndata: {\n\n",
            b"event: listening\ndata: []\n\n",
            b"event: listening\ndata: " + b"[" * 100_000 + b"\n\n",
            b"event: \xff\ndata: {}\n\n",
            b"x" * 3_000_000,
            GREETING + b"event: callback\ndata: null\n\n",
            GREETING + b'event: callback\ndata: {"number": 1}\n\n',
            GREETING + forwarded(timeout_s=1e300),
            GREETING + forwarded(timeout_s=-1),
            GREETING + forwarded(timeout_s="NaN"),
            GREETING + forwarded(body="\ud83d"),
            GREETING + forwarded(headers=[HOSTILE]),
        ],
        ids=range(12),
    )
    async def test_listen_names_a_stream_that_it_cannot_read(
        self, monkeypatch: pytest.MonkeyPatch, stream: bytes
    ) -> None:
        monkeypatch.setattr(listen_command, "_MAX_LINE_BYTES", 1_000_000)

        result = await listened(web.Response(body=stream))

        assert_harmless(result)
        assert result.exit_code == 1
        assert "answers with fields that this version does not know" in result.stderr

    @pytest.mark.parametrize(
        "answer",
        [
            {"status": 302, "headers": {"Location": "http://127.0.0.1:9/"}},
            {"status": 400, "text": json.dumps({"error": {"message": HOSTILE}})},
            {"status": 500, "text": "x" * 3_000_000},
            {"status": 500, "text": "[" * 60_000},
        ],
        ids=range(4),
    )
    async def test_listen_shortens_the_refusal_of_a_gateway(self, answer: dict[str, Any]) -> None:
        result = await listened(web.Response(**answer))

        assert_harmless(result)
        assert result.exit_code == 1
        assert len(result.stderr) < 1_000

    def test_compare_stops_reading_an_endless_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sides, "_MAX_BYTES", 1_000_000)

        with answering(HEAD, b"\r\n", endlessly=b" " * 65536) as (url, _):
            result = run(url, "compare", url)

        assert result.exit_code == 2
        assert "answers more than 1000000 bytes" in result.stderr
