"""Tasks that run beside others: a set of those that run, and one with a time limit."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

from sandbox_sim.ports.clock import Clock

T = TypeVar("T")


class RunningTasks(set["asyncio.Task[Any]"]):
    """The tasks that run, so that asyncio does not drop them; a task that ends is removed."""

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run this in its own task; returns the task."""
        task = asyncio.create_task(work)
        self.add(task)
        task.add_done_callback(self.discard)
        return task

    async def cancel(self) -> None:
        """Cancel the tasks, and wait until they have ended."""
        tasks = tuple(self)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# How long work that was cancelled may take to end, in seconds of real time.
CANCELLATION_S: Final = 1.0


class NotEnded(Exception):
    """A task has no result: it ran out of time, or it was cancelled."""


async def result_within(task: asyncio.Task[T], seconds: float, clock: Clock) -> T:
    """Return the result of a task or raise its exception; cancel it after `seconds`.

    A task that does not end within `CANCELLATION_S` of its cancellation is abandoned.

    Raises:
        NotEnded: there is no result; the task is done unless it ignores its cancellation.
    """
    try:
        await _wait_until_done(task, seconds, clock)
        if not task.done():
            task.cancel()
            await _wait_until_done(task, CANCELLATION_S, clock)
    except asyncio.CancelledError:
        _abandon(task)
        raise
    if not task.done() or task.cancelled():
        _abandon(task)
        raise NotEnded
    return task.result()


def _abandon(task: asyncio.Task[T]) -> None:
    """Cancel a task without waiting for its end."""
    task.cancel()
    # Read its exception, or asyncio logs that it was never retrieved.
    task.add_done_callback(lambda done: None if done.cancelled() else done.exception())


async def _wait_until_done(task: asyncio.Task[T], seconds: float, clock: Clock) -> None:
    """Return when the task is done, or after this many seconds of real time."""
    with suppress(TimeoutError):
        async with clock.timeout(seconds):
            await asyncio.wait({task})
