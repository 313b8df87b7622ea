"""`SandboxGateway` in coroutines, on a loop that may also run the receiver of callbacks."""

import asyncio
import threading
import time
from typing import Any

import aiohttp
import httpx
import pytest
from aiohttp import web
from pytest_aiohttp.plugin import AiohttpServer

from sandbox_sim import SandboxGateway
from sandbox_sim.testing import server
from tests.testing.conftest import collected, collection


@pytest.fixture
async def receiver(aiohttp_server: AiohttpServer) -> str:
    """The address of an application that receives callbacks on the loop of the test."""

    async def take(request: web.Request) -> web.Response:
        return web.Response(text=(await request.json())["trans_ref"])

    app = web.Application()
    app.router.add_post("/callbacks", take)
    return str((await aiohttp_server(app)).make_url("/callbacks"))


async def collected_by(client: aiohttp.ClientSession, gateway: SandboxGateway, **more: Any) -> None:
    address, body = f"{gateway.url}/make_payment", collection(gateway, **more)
    async with client.post(address, json=body, headers=gateway.headers) as answer:
        assert answer.status == 202


async def test_the_callback_reaches_an_application_on_the_same_loop(
    gateway: SandboxGateway, receiver: str
) -> None:
    """Moving the clock lets the application answer too."""
    async with aiohttp.ClientSession() as client:
        await collected_by(client, gateway, callback_url=receiver)
    callback = await gateway.aio.wait_callback(transaction_id="T1")
    assert callback.attempts[0].response_body == "T1"

    async with httpx.AsyncClient(auth=gateway.auth) as other:
        body = collection(gateway, transaction_id="T2", callback_url=receiver)
        await other.post(f"{gateway.url}/make_payment", json=body)
    ran = await gateway.aio.advance(seconds=1)
    assert [job.kind for job in ran] == ["settle", "deliver"]
    gateway.callbacks.expect_one(transaction_id="T2", state="delivered")


async def test_a_call_may_block_if_it_needs_no_application_or_runs_in_a_thread(
    gateway: SandboxGateway, receiver: str
) -> None:
    collected(gateway)
    gateway.advance(seconds=1)
    assert gateway.wait_callback(transaction_id="T1").state == "delivered"
    gateway.transactions.expect_one(status="000")

    collected(gateway, transaction_id="T2", callback_url=receiver)
    await asyncio.to_thread(gateway.advance, seconds=1)
    gateway.callbacks.expect_one(transaction_id="T2", state="delivered")


@pytest.mark.parametrize("call", ["advance", "wait_callback"])
async def test_blocking_the_loop_that_has_to_answer_is_refused(
    gateway: SandboxGateway, receiver: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "BLOCKED_AFTER_S", 0.05)
    collected(gateway, callback_url=receiver)

    with pytest.raises(RuntimeError) as caught:
        gateway.advance(seconds=1) if call == "advance" else gateway.wait_callback()

    sentence = str(caught.value)
    assert sentence.startswith("this call blocks the running event loop, and http://127.0.0.1:")
    assert sentence.endswith(f"In a coroutine write `await gateway.aio.{call}(…)`")
    assert (await gateway.aio.wait_callback(state="delivered")).transaction_id == "T1"


async def test_a_wait_ends_with_a_callback_that_comes_later(
    gateway: SandboxGateway, receiver: str
) -> None:
    waiting = asyncio.create_task(gateway.aio.wait_callback(transaction_id="T1"))
    await asyncio.sleep(0)

    async with aiohttp.ClientSession() as client:
        await collected_by(client, gateway, callback_url=receiver)

    assert (await waiting).state == "delivered"


async def test_errors_of_waits_and_of_the_clock_are_raised_in_coroutines(
    gateway: SandboxGateway,
) -> None:
    with pytest.raises(AssertionError, match="waited 0 s: expected a callback with status='000'"):
        await gateway.aio.wait_callback(status="000", timeout_s=0)
    with pytest.raises(ValueError, match="the clock can move by"):
        await gateway.aio.advance(seconds=-1)


async def test_a_wait_times_out_although_the_test_stops_real_time(
    gateway: SandboxGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.monotonic

    def stopped_by_the_test() -> float:
        return 0.0 if threading.current_thread().name == "sandbox_sim" else real()

    monkeypatch.setattr(time, "monotonic", stopped_by_the_test)

    with pytest.raises(AssertionError, match="there is none"):
        await asyncio.wait_for(gateway.aio.wait_callback(timeout_s=0.01), 10)


async def test_async_with_stops_the_gateway_although_a_callback_has_no_answer(
    receiver: str,
) -> None:
    async with SandboxGateway(settle_delay_ms=0) as gateway:
        collected(gateway, callback_url=receiver)
        assert (await gateway.aio.wait_callback()).state == "delivered"

        collected(gateway, transaction_id="T2", callback_url=receiver)
    assert not gateway.is_running


def test_another_event_loop_than_asyncio_is_refused_with_the_remedy(
    gateway: SandboxGateway,
) -> None:
    """`send` starts the coroutine without a loop of asyncio, as trio does."""
    collected(gateway)

    for call in ("advance", "retry_callbacks", "wait_callback"):
        with pytest.raises(RuntimeError, match="such as trio, run the blocking call in a thread"):
            getattr(gateway.aio, call)().send(None)

    gateway.callbacks.expect_none()
