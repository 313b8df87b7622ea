"""`sandbox-sim listen` forwards the callbacks of a gateway to an address of this machine."""

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
from tests.cli.receivers import Listen, is_signed, trusting
from tests.conftest import Sandbox, StartSandbox
from tests.kit.http_servers import listening


@asynccontextmanager
async def forwarding(
    url: str, forward_to: str, token: str | None = None
) -> AsyncIterator["asyncio.Queue[Any]"]:
    """Forward until the end of the block; yields what the command reports."""
    reports: asyncio.Queue[Any] = asyncio.Queue()
    work = Forwarding(url, token, forward_to, None, reports.put_nowait)
    task = asyncio.create_task(work.run_forever())
    try:
        yield reports
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_forwarded_callback_is_signed_and_its_answer_is_recorded(
    start_sandbox: StartSandbox, listen: Listen
) -> None:
    sandbox = await start_sandbox(control_token="secret")
    signed: list[bool] = []

    async def shop(request: web.Request) -> web.Response:
        signed.append(await is_signed(request))
        return web.Response(status=500, text="KeyError: 'transaction_id'")

    async with forwarding(sandbox.url, await listen(shop), "secret") as reports:
        assert (await reports.get())["event"] == "listening"
        await sandbox.collect(callback_url="https://shop.example/callback")
        await sandbox.advance(seconds=1)
        report = await reports.get()

    assert signed == [True]
    assert report["url"] == "https://shop.example/callback"
    assert report["verdict"] == "not acknowledged: HTTP 500, and only 2xx acknowledges"
    (callback,) = await sandbox.gateway.store.run(lambda unit: unit.list_callbacks(Listing()))
    (attempt,) = callback.attempts
    assert attempt.response_body == "KeyError: 'transaction_id'"


async def test_a_lost_connection_is_opened_again(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, listen: Listen
) -> None:
    monkeypatch.setattr(command, "_RECONNECT_S", 0)
    async with forwarding(sandbox.url, await listen(trusting)) as reports:
        assert (await reports.get())["event"] == "listening"
        sandbox.gateway.listeners.close()
        assert (await reports.get())["event"] == "disconnected"
        sandbox.gateway.listeners.closed = False
        while (await reports.get())["event"] != "listening":
            pass


async def test_an_answer_that_is_not_http_is_a_lost_connection() -> None:
    async def gateway(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.write(b"HTTP/1.1 abc\r\n\r\n")
        request.transport.close()
        return web.Response()

    async with (
        listening(web.get("/_sandbox/listen", gateway)) as url,
        forwarding(url, "http://127.0.0.1:9/") as reports,
    ):
        assert (await reports.get())["event"] == "disconnected"


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["--forward-to", "shop"], 2, "shop is not a valid address"),
        (["--from", "http://127.0.0.1:9", "--forward-to", "http://127.0.0.1:5000/"], 1, "reached"),
        (["--forward-to", "http://127.0.0.1:5000/"], 1, "give it with --token"),
    ],
    ids=["not an address", "no gateway", "no token"],
)
async def test_a_wrong_address_a_missing_gateway_and_a_missing_token_are_named(
    start_sandbox: StartSandbox, words: list[str], code: int, problem: str
) -> None:
    sandbox = await start_sandbox(control_token="secret")

    result = await on(sandbox, "listen", *words)

    assert result.exit_code == code
    assert problem in result.stderr
