"""The clock: gateway time, which can be shifted and frozen, and time limits in real time."""

import asyncio
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple, Protocol, TypedDict

from sandbox_sim.values.timestamps import Timestamp, iso


class ClockState(NamedTuple):
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
