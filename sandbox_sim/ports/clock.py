"""The clock: gateway time, which can be shifted and frozen, and time limits in real time."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Protocol, TypedDict, TypeVar

from sandbox_sim.values.timestamps import Timestamp, iso


@dataclass(frozen=True, slots=True)
class ClockState:
    """How the clock is set.

    shift: the difference to the machine's time; the time spent frozen is added on resume.
    frozen_at: the moment at which the clock is stopped, or None.
    """

    shift: timedelta = timedelta()
    frozen_at: datetime | None = None

    def now(self, machine: datetime) -> datetime:
        """Gateway time when the machine's clock shows `machine`."""
        if self.frozen_at is not None:
            return self.frozen_at
        return machine + self.shift if self.shift else machine

    def moved(self, by: timedelta) -> "ClockState":
        """The clock moved by this much, forward or back; a frozen clock stays frozen."""
        return ClockState(self.shift + by, self.frozen_at and self.frozen_at + by)

    def frozen(self, machine: datetime) -> "ClockState":
        """The clock frozen at its current time."""
        return ClockState(self.shift, self.now(machine))

    def resumed(self, machine: datetime) -> "ClockState":
        """The clock running again, from the time it shows."""
        return ClockState(self.now(machine) - machine)


class Clock(Protocol):
    """Two times: gateway time, which can be moved and frozen, and real time, which always runs."""

    def now(self) -> datetime:
        """Gateway time, in UTC."""

    def machine_now(self) -> datetime:
        """The machine's time, in UTC, however gateway time is set."""

    def monotonic(self) -> float:
        """Real time in seconds, for durations only."""

    @property
    def state(self) -> ClockState:
        """How gateway time is set."""

    def set_to(self, state: ClockState) -> None:
        """Set gateway time to the state of another clock; every `wait` returns."""

    def move_to(self, moment: datetime) -> None:
        """Set gateway time to this moment; every `wait` for an earlier one returns."""

    def freeze(self) -> None:
        """Stop gateway time; real time goes on."""

    def resume(self) -> None:
        """Let gateway time run again, from the time it shows."""

    async def wait_at_most(self, wake: asyncio.Event, seconds: float) -> None:
        """Return when `wake` is set, or after this many seconds of real time."""

    async def pause(self, seconds: float) -> None:
        """Return after this many seconds of real time."""

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        """Return when `wake` is set or gateway time has reached `until`; perhaps earlier.

        until: None waits for `wake` alone. It can return early, so callers check the time again.
        """

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """A time limit in real time for an `async with`; None for one that is set later."""


class ClockView(TypedDict):
    """Gateway time."""

    now: Timestamp
    frozen: Annotated[bool, "whether gateway time is frozen"]
    shift_s: Annotated[float, "by how many seconds it was moved from the time of the machine"]


def shown(clock: Clock) -> ClockView:
    """Gateway time, whether it is frozen, and how far it was moved in seconds."""
    state = clock.state
    return {
        "now": iso(clock.now()),
        "frozen": state.frozen_at is not None,
        "shift_s": state.shift.total_seconds(),
    }


T = TypeVar("T")


class RunningTasks(set["asyncio.Task[Any]"]):
    """Tasks that run beside others, which asyncio itself does not keep; one that ends leaves."""

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Run this in a task of its own."""
        task = asyncio.create_task(work)
        self.add(task)
        task.add_done_callback(self.discard)

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


async def ended_within(task: asyncio.Task[T], seconds: float, clock: Clock) -> T:
    """Return the result of a task or raise its exception; cancel it after `seconds`.

    A task that does not end within `CANCELLATION_S` of its cancellation is abandoned.

    Raises:
        NotEnded: there is no result; the task is done unless it ignores its cancellation.
    """
    try:
        await _wait(task, seconds, clock)
        if not task.done():
            task.cancel()
            await _wait(task, CANCELLATION_S, clock)
    except asyncio.CancelledError:
        _leave(task)
        raise
    if not task.done() or task.cancelled():
        _leave(task)
        raise NotEnded
    return task.result()


def _leave(task: asyncio.Task[T]) -> None:
    """Cancel a task without waiting for its end."""
    task.cancel()
    # Read its exception, or asyncio logs that it was never retrieved.
    task.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception())


async def _wait(task: asyncio.Task[T], seconds: float, clock: Clock) -> None:
    """Return when the task is done, or after this many seconds of real time."""
    with suppress(TimeoutError):
        async with clock.timeout(seconds):
            await asyncio.wait({task})
