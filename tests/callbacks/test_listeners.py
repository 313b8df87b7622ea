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


def test_the_newest_listener_of_the_service_comes_before_the_newest_of_all(
    listeners: CallbackListeners,
) -> None:
    assert listeners.of(callback()) is None
    of_all, newer = listeners.add(None, "a"), listeners.add(None, "b")
    of_one = listeners.add(55, "c")

    assert listeners.of(callback()) is of_one
    assert listeners.of(callback(service_id=56)) is newer
    assert listeners.of(callback(mode=ServiceMode.PRODUCTION)) is None, "it is never diverted"

    listeners.remove(newer)
    listeners.remove(of_one)
    assert listeners.of(callback()) is listeners.of(callback(service_id=56)) is of_all


async def test_the_answer_of_the_program_is_the_response_to_the_attempt(
    listeners: CallbackListeners,
) -> None:
    listener = listeners.add(None, "a")
    attempt = sent(listener, 30)

    taken = await listener.next(30)

    assert taken is not None
    assert taken.headers == {"X-Staging": "1"}
    assert "secret" not in taken.url
    assert listener.answer(taken.number, ReceiverResponse(200, "OK", 0))
    assert (await attempt).status_code == 200
    assert not listener.answer(taken.number, ReceiverResponse(500, "late", 0))


async def test_a_callback_that_is_not_taken_in_time_times_out_and_is_dropped(
    listeners: CallbackListeners,
) -> None:
    listener = listeners.add(None, "a")

    answer = await sent(listener, 0)

    assert (answer.failure_kind, answer.problem) == (FailureKind.TIMEOUT, "no answer within 0 s")
    assert await listener.next(0) is None


async def test_a_listener_that_ends_fails_its_attempts(listeners: CallbackListeners) -> None:
    listener = listeners.add(None, "a")
    attempt = sent(listener, 30)
    await listener.next(30)

    listeners.remove(listener)

    assert "disconnected before it answered" in str((await attempt).problem)
