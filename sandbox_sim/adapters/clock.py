"""The only place that asks what time it is, or sleeps."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Final

from sandbox_sim.domain.control.clock import ClockState

# Jobs that fall due within this time are run in one go.
RESOLUTION_S: Final = 0.005
# Nobody tells when the machine was asleep, or its time was set: whoever waits looks again.
LOOK_AGAIN_S: Final = 60.0


class SystemClock:
    """Gateway time is the machine's, unless it is moved, or frozen.

    frozen_at: where it stands still from the start, for whoever wants to know what time it is.
    """

    def __init__(self, frozen_at: datetime | None = None) -> None:
        self._state = ClockState(frozen_at=frozen_at)
        self._waiting: set[asyncio.Event] = set()

    @property
    def state(self) -> ClockState:
        """How it is set."""
        return self._state

    def now(self) -> datetime:
        """Gateway time, in UTC."""
        return self._state.now(datetime.now(UTC))

    # Real time in seconds, for durations only.
    monotonic = staticmethod(time.monotonic)

    def set_to(self, state: ClockState) -> None:
        """Take over how another clock is set; whoever waits looks again."""
        self._state = state
        for event in self._waiting:
            event.set()

    def move_to(self, moment: datetime) -> None:
        """Make gateway time this moment; it goes on from there, or stands still there."""
        self.set_to(self._state.moved(moment - self.now()))

    def freeze(self) -> None:
        """Let gateway time stand still."""
        self.set_to(self._state.frozen(datetime.now(UTC)))

    def resume(self) -> None:
        """Let gateway time go on from where it stands."""
        self.set_to(self._state.resumed(datetime.now(UTC)))

    async def pause(self, seconds: float) -> None:
        """Let real time pass."""
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """A limit in real time for an `async with`; None for one that is set later."""
        return asyncio.timeout(seconds)

    async def wait_at_most(self, wake: asyncio.Event, seconds: float) -> None:
        """Return when `wake` is set or so much real time has passed."""
        await self._wait(wake, seconds)

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        """Return when `wake` is set, when `until` is reached, or to look again how long that is.

        That is when the clock was set anew, and after a minute.
        """
        seconds = None
        if until is not None:
            left = (until - self.now()).total_seconds()
            if left <= 0 or self._state.frozen_at is None:
                seconds = min(max(left, RESOLUTION_S), LOOK_AGAIN_S)
        await self._wait(wake, seconds)

    async def _wait(self, wake: asyncio.Event, seconds: float | None) -> None:
        self._waiting.add(wake)
        try:
            async with asyncio.timeout(seconds):
                await wake.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(wake)


class VirtualClock(SystemClock):
    """One that is frozen from the start, and nobody waits for real time; for tests."""

    def __init__(self, frozen_at: datetime = datetime(2026, 1, 1, 9, tzinfo=UTC)) -> None:
        super().__init__(frozen_at)

    async def pause(self, seconds: float) -> None:
        """Let no real time pass."""
        await asyncio.sleep(0)
