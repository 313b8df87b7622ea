"""The clock; the only module that reads the time or sleeps."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Final

from sandbox_sim.ports.clock import ClockState

# Shortest wait, so that jobs that fall due within this time run together.
RESOLUTION_S: Final = 0.005
# Longest wait: no event reports that the machine was suspended or its time was changed.
RECHECK_S: Final = 60.0


class SystemClock:
    """Gateway time is the machine's time, unless it is shifted or frozen.

    frozen_at: freezes the clock at this time from the start.
    """

    def __init__(self, frozen_at: datetime | None = None) -> None:
        self._state = ClockState(frozen_at=frozen_at)
        self._wake_events: set[asyncio.Event] = set()

    @property
    def state(self) -> ClockState:
        """How the clock is set."""
        return self._state

    def now(self) -> datetime:
        """Gateway time, in UTC."""
        return self._state.now(datetime.now(UTC))

    def machine_now(self) -> datetime:
        """The machine's time, in UTC, wherever gateway time is."""
        return datetime.now(UTC)

    # Real time in seconds, for durations only.
    monotonic = staticmethod(time.monotonic)

    def set_to(self, state: ClockState) -> None:
        """Set the clock to the state of another one and wake all waiting tasks."""
        self._state = state
        for event in self._wake_events:
            event.set()

    def move_to(self, moment: datetime) -> None:
        """Set gateway time to this moment; a frozen clock stays frozen."""
        self.set_to(self._state.moved(moment - self.now()))

    def freeze(self) -> None:
        """Stop gateway time."""
        self.set_to(self._state.frozen(datetime.now(UTC)))

    def resume(self) -> None:
        """Let gateway time run again, from the time it shows."""
        self.set_to(self._state.resumed(datetime.now(UTC)))

    async def pause(self, seconds: float) -> None:
        """Sleep in real time."""
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """A time limit in real time for an `async with`; None for one that is set later."""
        return asyncio.timeout(seconds)

    async def wait_at_most(self, wake: asyncio.Event, seconds: float) -> None:
        """Wait until `wake` is set, for at most this many seconds of real time."""
        await self._wait(wake, seconds)

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        """Wait until `wake` is set or gateway time reaches `until`.

        It also returns when the clock is set, and after a minute, so callers must check the time
        again.
        """
        seconds = None
        if until is not None:
            left = (until - self.now()).total_seconds()
            if left <= 0 or self._state.frozen_at is None:
                seconds = min(max(left, RESOLUTION_S), RECHECK_S)
        await self._wait(wake, seconds)

    async def _wait(self, wake: asyncio.Event, seconds: float | None) -> None:
        self._wake_events.add(wake)
        try:
            async with asyncio.timeout(seconds):
                await wake.wait()
        except TimeoutError:
            pass
        finally:
            self._wake_events.discard(wake)


class VirtualClock(SystemClock):
    """A clock for tests: frozen from the start, and `pause` does not wait."""

    def __init__(self, frozen_at: datetime = datetime(2026, 1, 1, 9, tzinfo=UTC)) -> None:
        super().__init__(frozen_at)

    async def pause(self, seconds: float) -> None:
        """Let other tasks run, without waiting."""
        await asyncio.sleep(0)
