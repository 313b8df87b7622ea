"""A callback is sent after its status is final and its answer is written (D16)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from sandbox_sim.web.api.responses import GatewayAnswer
from sandbox_sim.web.transport.server import GRACE_S
from tests.conftest import Sandbox, StartSandbox
from tests.stores.conftest import eventually
from tests.web.conftest import Receiver


@dataclass
class HeldAnswer:
    """Holds back the first answer with HTTP 202 until `released` is set."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)


@pytest.fixture
async def held_answer(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HeldAnswer]:
    held = HeldAnswer()
    prepare = GatewayAnswer.prepare

    async def wait_and_write(answer: GatewayAnswer, request: web.BaseRequest) -> None:
        if answer.status == 202 and not held.reached.is_set():
            held.reached.set()
            await held.released.wait()
        await prepare(answer, request)

    monkeypatch.setattr(GatewayAnswer, "prepare", wait_and_write)
    yield held
    held.released.set()


def refs(receiver: Receiver) -> list[str]:
    return [delivery.body["trans_ref"] for delivery in receiver.deliveries]


@pytest.mark.spec("states.transactions")
@pytest.mark.decision("D16")
@pytest.mark.parametrize("operation", ["collect", "card"])
@pytest.mark.parametrize("settle_delay_ms", [0, 1000])
async def test_a_receiver_that_queries_the_status_gets_000(
    start_sandbox: StartSandbox, receiver: Receiver, operation: str, settle_delay_ms: int
) -> None:
    sandbox = await start_sandbox(settle_delay_ms=settle_delay_ms)
    seen: list[str] = []

    async def ask(_request: web.Request) -> web.StreamResponse:
        seen.append((await sandbox.status()).data["status"])
        return web.Response()

    receiver.answer = ask
    await getattr(sandbox, operation)(callback_url=receiver.url)
    await sandbox.advance(seconds=3)

    assert seen == ["000"]


@pytest.mark.decision("D16")
async def test_a_receiver_may_start_the_next_payment_before_it_answers(
    sandbox: Sandbox, receiver: Receiver
) -> None:
    async def pay_out(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/first"):
            url = f"{receiver.url}/second"
            assert (await sandbox.payout(transaction_id="T2", callback_url=url)).code == "202"
        return web.Response()

    receiver.answer = pay_out
    await sandbox.collect(callback_url=f"{receiver.url}/first")
    await sandbox.advance(seconds=2)

    assert refs(receiver) == ["T1", "T2"]


@pytest.mark.decision("D16")
@pytest.mark.parametrize("client", ["waits", "goes away"])
async def test_a_callback_waits_until_its_answer_is_written_or_its_client_is_gone(
    start_sandbox: StartSandbox, receiver: Receiver, held_answer: HeldAnswer, client: str
) -> None:
    sandbox = await start_sandbox(settle_delay_ms=0)
    held = asyncio.create_task(sandbox.collect(transaction_id="held", callback_url=receiver.url))
    await held_answer.reached.wait()

    # When the callback of this later payment arrives, the first one had time to leave too.
    await sandbox.collect(transaction_id="other", callback_url=receiver.url)
    await receiver.arrival()
    assert refs(receiver) == ["other"]

    if client == "goes away":
        held.cancel()
    held_answer.released.set()
    await asyncio.wait({held})
    await sandbox.advance(seconds=0)
    await eventually(lambda: refs(receiver) == ["other", "held"])
    assert held.cancelled() or held.result().code == "202"


@pytest.mark.decision("D30")
@pytest.mark.parametrize("turns", range(8))
async def test_a_stopping_gateway_does_not_wait_for_a_callback_to_its_own_inbox(
    start_sandbox: StartSandbox, turns: int
) -> None:
    """The gateway stops after `turns` iterations of the event loop, in another stage each time."""
    sandbox = await start_sandbox(settle_delay_ms=0)
    await sandbox.collect()
    for _ in range(turns):
        await asyncio.sleep(0)
    stopping = asyncio.create_task(sandbox.stop())
    done, _ = await asyncio.wait({stopping}, timeout=GRACE_S - 0.5)
    await stopping

    assert done
