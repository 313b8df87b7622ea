"""Calls that fall due later."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from sandbox_sim.networks.scheduled_calls import ScheduledCalls
from tests.fakes import WatchedClock
from tests.turns import turns


def noting(made: list[str], name: str) -> Callable[[], Awaitable[None]]:
    async def call() -> None:
        made.append(name)

    return call


async def test_calls_are_made_when_they_fall_due_in_the_order_in_which_they_were_added() -> None:
    clock, made = WatchedClock(), list[str]()
    calls = ScheduledCalls(clock)
    soon, later = clock.now() + timedelta(seconds=1), clock.now() + timedelta(seconds=2)
    for due_at, name in ((later, "c"), (soon, "a"), (soon, "b")):
        calls.add(due_at, noting(made, name))
    calls.start()

    await turns()
    assert made == []
    clock.move_to(soon)
    await turns()
    assert made == ["a", "b"]
    clock.move_to(later)
    await turns()
    assert made == ["a", "b", "c"]
    await calls.close()


async def test_calls_that_remain_at_the_end_are_made_after_another_start() -> None:
    clock, made = WatchedClock(), list[str]()
    calls = ScheduledCalls(clock)
    calls.start()
    calls.add(clock.now() + timedelta(seconds=1), noting(made, "a"))
    await turns()
    await calls.close()

    clock.move_to(clock.now() + timedelta(seconds=1))
    await turns()
    assert made == []
    calls.start()
    await turns()
    assert made == ["a"]
    await calls.close()
