"""Errors of the server under /_sandbox: the answer is well formed, and the log has the cause."""

import asyncio
import logging
from typing import Any

import pytest
from aiohttp import ClientError, web

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.ports import StoreError
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.web.control.health import HealthRoutes
from sandbox_sim.web.control.inbox import InboxRoutes, Received
from tests.conftest import Sandbox, StartSandbox
from tests.turns import SOON_S
from tests.web.control_api import ask, assert_error
from tests.web.wire import Wire, request_bytes

REQUESTS = [
    ("GET", "/_sandbox/readyz"),
    ("GET", "/_sandbox/ledger"),
    ("POST", "/_sandbox/inbox/orders"),
    ("GET", "/_sandbox/pay/guess"),
]
FAILURE = "postgresql://db.test/pay: index row size exceeds maximum for index transactions_by_id"


def without_store(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(_store: object, _work: object) -> None:
        raise StoreError(FAILURE)

    monkeypatch.setattr(MemoryStore, "run", failing)


@pytest.mark.parametrize(
    "settings", [{"host": "0.0.0.0", "control_token": "s3cret"}, {"tls_terminated": True}]
)
async def test_a_server_beyond_loopback_does_not_reveal_errors_of_its_store(
    start_sandbox: StartSandbox,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, Any],
) -> None:
    sandbox = await start_sandbox(**settings)
    without_store(monkeypatch)

    paid = await sandbox.collect()
    answers = [await ask(sandbox, *request) for request in REQUESTS]
    answers = [each for each in answers if each.status != 401]

    assert (paid.status, paid.code) == (500, "500")
    assert ": the log of the server says why (" in paid.headers["X-Sandbox-Why"]
    for answer in answers:
        assert_error(answer, 503, "the log of the server says why")
    assert "db.test" not in str([paid, *answers])
    assert "transactions_by_id" not in str([paid, *answers])
    assert FAILURE in caplog.text


async def test_many_failures_of_the_store_share_a_line_in_the_log(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first failure has a line at once, and those of each second share the next one.

    On loopback, clients learn what is wrong with the store.
    """
    now = [sandbox.gateway.clock.monotonic() + 10]
    monkeypatch.setattr(SystemClock, "monotonic", lambda *_: now[0])
    without_store(monkeypatch)
    for _ in range(4):
        assert f"{FAILURE} (" in (await sandbox.collect()).headers["X-Sandbox-Why"]
    now[0] += 1
    assert_error(await ask(sandbox, "GET", "/_sandbox/readyz"), 503, FAILURE)

    lines = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert [each for each in lines if "journal" not in each] == [
        f"the store failed in 1 request, the last time because: {FAILURE}",
        f"the store failed in 4 requests, the last time because: {FAILURE}",
    ]


async def test_a_client_that_disconnects_during_its_request_causes_no_error(
    start_sandbox: StartSandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    receive = InboxRoutes.receive

    async def watched(routes: InboxRoutes, request: web.Request) -> Received:
        begun.set()
        try:
            return await receive(routes, request)
        finally:
            ended.set()

    monkeypatch.setattr(InboxRoutes, "receive", watched)
    sandbox = await start_sandbox()
    wire = Wire(sandbox.url)

    async with asyncio.timeout(SOON_S):
        wire.connect().sendall(request_bytes("/_sandbox/inbox/orders", b"x" * 100)[:-50])
        await begun.wait()
        wire.close()
        await ended.wait()

    assert await sandbox.inbox() == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_an_answer_that_fails_after_its_start_is_cut_off(
    start_sandbox: StartSandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The client must not read the error as a part of the answer."""

    async def half(_routes: HealthRoutes, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"half of it")
        raise ZeroDivisionError("in the middle")

    monkeypatch.setattr(HealthRoutes, "version", half)
    sandbox = await start_sandbox()

    with pytest.raises(ClientError):
        async with asyncio.timeout(SOON_S):
            await ask(sandbox, "GET", "/_sandbox/version")

    assert "in the middle" in caplog.text
