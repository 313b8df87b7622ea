"""The clock: gateway time and real time."""

import asyncio
from datetime import datetime
from typing import Protocol

from sandbox_sim.domain.control.clock import ClockState


class Clock(Protocol):
    """Two times: the gateway's, which can be moved and frozen, and the real one, which goes on."""

    def now(self) -> datetime:
        """Gateway time, in UTC."""
        ...

    def machine_now(self) -> datetime:
        """The machine's time, in UTC, wherever gateway time is."""
        ...

    def monotonic(self) -> float:
        """Real time in seconds, for durations only."""
        ...

    @property
    def state(self) -> ClockState:
        """How it is set."""
        ...

    def set_to(self, state: ClockState) -> None:
        """Take over how another clock is set; whoever waits looks again."""
        ...

    def move_to(self, moment: datetime) -> None:
        """Make `now()` this moment; whoever waits for an earlier one wakes."""
        ...

    def freeze(self) -> None:
        """Let gateway time stand still; real time goes on."""
        ...

    def resume(self) -> None:
        """Let gateway time go on from where it stands."""
        ...

    async def wait_at_most(self, wake: asyncio.Event, seconds: float) -> None:
        """Return when `wake` is set or so much real time has passed."""
        ...

    async def pause(self, seconds: float) -> None:
        """Let real time pass."""
        ...

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        """Return when `wake` is set, when gateway time has reached `until`, or to look again."""
        ...

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """A limit in real time for an `async with`; None for one that is set later."""
        ...
