"""Listeners take callbacks in place of their receivers, and keep nothing that is over."""

import asyncio
from datetime import timedelta

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.callbacks.listeners import CallbackListener, CallbackListeners
from sandbox_sim.records.callbacks import CallbackRecord, FailureKind, Profile, ReceiverResponse
from sandbox_sim.values.clients import ServiceMode

URL = "https://ama:secret@shop.example/callback"


@pytest.fixture
def listeners() -> CallbackListeners:
    return CallbackListeners(VirtualClock(), RandomIds(seed=1))


def callback(service_id: int = 55, mode: ServiceMode = ServiceMode.SANDBOX) -> CallbackRecord:
    at = VirtualClock().now()
    names = ("C1", service_id, "T1", "13300269527", URL)
    return CallbackRecord(*names, Profile.TRANS, "{}", None, at, mode=mode)


def sent(listener: CallbackListener, limit_s: float) -> asyncio.Task[ReceiverResponse]:
    limit = timedelta(seconds=limit_s)
    return asyncio.create_task(listener.send(URL, {"X-Staging": "1"}, b"{}", limit))


def test_the_newest_of_the_service_goes_first_then_the_newest_of_all(
    listeners: CallbackListeners,
) -> None:
    assert listeners.of(callback()) is None
    of_all, newer = listeners.add(None, "a"), listeners.add(None, "b")
    of_one = listeners.add(55, "c")

    assert listeners.of(callback()) is of_one
    assert listeners.of(callback(56)) is newer
    assert listeners.of(callback(mode=ServiceMode.PRODUCTION)) is None, "it is never diverted"

    listeners.remove(newer)
    listeners.remove(of_one)
    assert listeners.of(callback()) is listeners.of(callback(56)) is of_all


async def test_the_answer_of_the_program_is_that_of_the_attempt(
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


async def test_what_a_program_does_not_take_in_time_is_not_kept(
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
