"""The clock: gateway time and real time."""

import asyncio
from datetime import datetime
from typing import Protocol

from sandbox_sim.domain.control.clock import ClockState


class Clock(Protocol):
    """Two times: gateway time, which can be moved and frozen, and real time, which always runs."""

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
        """How gateway time is set."""
        ...

    def set_to(self, state: ClockState) -> None:
        """Set gateway time as another clock is set. Every `wait` returns, to look again."""
        ...

    def move_to(self, moment: datetime) -> None:
        """Set gateway time to this moment. Every `wait` for an earlier one returns."""
        ...

    def freeze(self) -> None:
        """Stop gateway time; real time goes on."""
        ...

    def resume(self) -> None:
        """Let gateway time go on from where it stands."""
        ...

    async def wait_at_most(self, wake: asyncio.Event, seconds: float) -> None:
        """Return when `wake` is set, or after so much real time."""
        ...

    async def pause(self, seconds: float) -> None:
        """Return after so much real time."""
        ...

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        """Return when `wake` is set or gateway time has reached `until`; perhaps earlier.

        until: None waits for `wake` alone. It can return early, so the caller looks again.
        """
        ...

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """A limit in real time for an `async with`; None for one that is set later."""
        ...
