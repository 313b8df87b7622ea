"""Errors of the server under /_sandbox: the answer has the usual shape, only the log the cause."""

import asyncio
import logging

import pytest
from aiohttp import ClientError, web

from sandbox_sim.adapters.stores.memory.memory_store import MemoryStore
from sandbox_sim.web.control.health import HealthRoutes
from sandbox_sim.web.control.inbox import InboxRoutes, Received
from tests.conftest import Sandbox, StartSandbox
from tests.web.control_api import ask, assert_error
from tests.web.wire import Wire, request_bytes

ASKED = [
    ("GET", "/_sandbox/readyz"),
    ("GET", "/_sandbox/ledger"),
    ("POST", "/_sandbox/inbox/orders"),
    ("GET", "/_sandbox/inbox/orders/messages"),
    ("GET", "/_sandbox/pay/guess"),
]


@pytest.mark.parametrize(("method", "path"), ASKED)
async def test_it_is_500_and_tells_nothing_of_its_inside(
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    method: str,
    path: str,
) -> None:
    async def broken(_store: object, _work: object) -> None:
        raise OSError("the disk of /var/secret is full")

    monkeypatch.setattr(MemoryStore, "run", broken)

    answer = await ask(sandbox, method, path)

    assert_error(answer, 500)
    assert "disk" not in answer.body["error"]["message"]
    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert record.getMessage() == f"{method} {path} failed"
    assert "the disk of /var/secret is full" in caplog.text


async def test_the_server_goes_on_after_it(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_store: object, _work: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "run", broken)
        await ask(sandbox, "GET", "/_sandbox/ledger")

    assert (await ask(sandbox, "GET", "/_sandbox/ledger")).status == 200


async def test_who_hangs_up_halfway_is_no_fault(
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

    async with asyncio.timeout(5):
        wire.connect().sendall(request_bytes("/_sandbox/inbox/orders", b"x" * 100)[:-50])
        await begun.wait()
        wire.close()
        await ended.wait()

    assert await sandbox.inbox() == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_connection_of_our_own_that_breaks_is_a_fault(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_store: object, _work: object) -> None:
        raise ConnectionRefusedError("no database")

    monkeypatch.setattr(MemoryStore, "run", broken)

    assert_error(await ask(sandbox, "GET", "/_sandbox/ledger"), 500)
    assert "no database" in caplog.text


async def test_an_answer_that_was_begun_is_broken_off(
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
        async with asyncio.timeout(5):
            await ask(sandbox, "GET", "/_sandbox/version")

    assert "in the middle" in caplog.text
