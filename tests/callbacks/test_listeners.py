"""Listeners take callbacks in place of their receivers, and drop those that time out."""

import asyncio
from datetime import timedelta

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.callbacks.listeners import CallbackListener, CallbackListeners
from sandbox_sim.records.callbacks import FailureKind, ReceiverResponse
from sandbox_sim.values.clients import ServiceMode
from tests.sample_records import callback

URL = "https://ama:secret@shop.example/callback"


@pytest.fixture
def listeners() -> CallbackListeners:
    return CallbackListeners(VirtualClock(), RandomIds(seed=1))


def sent(listener: CallbackListener, limit_s: float) -> asyncio.Task[ReceiverResponse]:
    limit = timedelta(seconds=limit_s)
    return asyncio.create_task(listener.send(URL, {"X-Staging": "1"}, b"{}", limit))


def test_a_callback_of_production_mode_is_never_diverted(listeners: CallbackListeners) -> None:
    older, newer = listeners.add(None, "a"), listeners.add(None, "b")
    live = callback(mode=ServiceMode.PRODUCTION)

    assert (listeners.for_callback(callback()), listeners.for_callback(live)) == (newer, None)
    listeners.remove(newer)
    assert (listeners.for_callback(callback()), listeners.for_callback(live)) == (older, None)


async def test_the_secrets_of_an_address_are_masked(listeners: CallbackListeners) -> None:
    listener = listeners.add(None, "a")
    attempt = sent(listener, 30)

    taken = await listener.next(30)
    listener.end()
    await attempt

    assert taken is not None
    assert (taken.url, taken.headers) == ("https://***@shop.example/callback", {"X-Staging": "1"})


async def test_a_callback_that_is_not_taken_in_time_times_out_and_is_dropped(
    listeners: CallbackListeners,
) -> None:
    listener = listeners.add(None, "a")

    answer = await sent(listener, 0)

    assert (answer.failure_kind, answer.problem) == (FailureKind.TIMEOUT, "no answer within 0 s")
    assert await listener.next(0) is None
