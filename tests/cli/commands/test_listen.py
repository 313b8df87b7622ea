"""`sandbox-sim listen`: callbacks of a gateway come to an address of this machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from sandbox_sim.cli.commands import listen as command
from sandbox_sim.cli.commands.listen import Forwarding
from sandbox_sim.records.listing import Listing
from tests.cli.asking import on
from tests.cli.receivers import Listen, knows
from tests.conftest import Sandbox, StartSandbox
from tests.kit.http_servers import listening


@asynccontextmanager
async def forwarding(
    sandbox: Sandbox, forward_to: str, token: str | None = None
) -> AsyncIterator["asyncio.Queue[Any]"]:
    """Forward until the end of the block; yields what the command tells."""
    told: asyncio.Queue[Any] = asyncio.Queue()
    work = Forwarding(sandbox.url, token, forward_to, None, told.put_nowait)
    task = asyncio.create_task(work.run_forever())
    try:
        assert (await told.get())["event"] == "listening"
        yield told
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_callback_comes_with_its_signature_and_the_answer_is_recorded(
    start_sandbox: StartSandbox, listen: Listen
) -> None:
    sandbox = await start_sandbox(control_token="secret")
    known: list[bool] = []

    async def shop(request: web.Request) -> web.Response:
        known.append(await knows(request))
        return web.Response(status=500, text="KeyError: 'transaction_id'")

    async with forwarding(sandbox, await listen(shop), "secret") as told:
        await sandbox.collect(callback_url="https://shop.example/callback")
        await sandbox.advance(seconds=1)
        line = await told.get()

    assert known == [True]
    assert line["url"] == "https://shop.example/callback"
    assert line["verdict"] == "not acknowledged: HTTP 500, and only 2xx acknowledges"
    (callback,) = await sandbox.gateway.store.run(lambda unit: unit.list_callbacks(Listing()))
    (attempt,) = callback.attempts
    assert attempt.response_body == "KeyError: 'transaction_id'"


async def test_a_connection_that_is_lost_is_opened_again(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, listen: Listen
) -> None:
    async def shop(_request: web.Request) -> web.Response:
        return web.Response()

    monkeypatch.setattr(command, "_RECONNECT_S", 0)
    async with forwarding(sandbox, await listen(shop)) as told:
        sandbox.gateway.listeners.close()
        assert (await told.get())["event"] == "disconnected"
        sandbox.gateway.listeners.closed = False
        while (await told.get())["event"] != "listening":
            pass


async def test_an_answer_that_is_not_http_is_a_lost_connection() -> None:
    async def gateway(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.write(b"HTTP/1.1 abc\r\n\r\n")
        request.transport.close()
        return web.Response()

    told: asyncio.Queue[Any] = asyncio.Queue()
    async with listening(web.get("/_sandbox/listen", gateway)) as url:
        work = Forwarding(url, None, "http://127.0.0.1:9/", None, told.put_nowait)
        task = asyncio.create_task(work.run_forever())
        lost = await told.get()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert lost["event"] == "disconnected"


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["--forward-to", "shop"], 2, "shop is not a valid address"),
        (["--from", "http://127.0.0.1:9", "--forward-to", "http://127.0.0.1:5000/"], 1, "reached"),
        (["--forward-to", "http://127.0.0.1:5000/"], 1, "give it with --token"),
    ],
    ids=["not an address", "no gateway", "no token"],
)
async def test_what_cannot_work_is_told(
    start_sandbox: StartSandbox, words: list[str], code: int, problem: str
) -> None:
    sandbox = await start_sandbox(control_token="secret")

    result = await on(sandbox, "listen", *words)

    assert result.exit_code == code
    assert problem in result.stderr
