"""The only place that asks what time it is, or sleeps."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Final

# Jobs that fall due within this time are run in one go.
RESOLUTION_S: Final = 0.005


class _Clock:
    """What both have in common: real time, and waiting that a move of the clock ends."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()

    def monotonic(self) -> float:
        """Real time in seconds, for durations only."""
        return time.monotonic()

    async def wait_at_most(self, wake: asyncio.Event, seconds: float) -> None:
        """Return when `wake` is set or so much real time has passed."""
        await self._wait(wake, seconds)

    def _moved(self) -> None:
        for event in self._waiting:
            event.set()

    async def _wait(self, wake: asyncio.Event, seconds: float | None) -> None:
        self._waiting.add(wake)
        try:
            async with asyncio.timeout(seconds):
                await wake.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(wake)


class SystemClock(_Clock):
    """Gateway time is the machine's, plus a shift that `move_to` sets."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = timedelta()

    def now(self) -> datetime:
        """Gateway time, in UTC."""
        return datetime.now(UTC) + self.shift

    async def pause(self, seconds: float) -> None:
        """Let real time pass."""
        await asyncio.sleep(seconds)

    def move_to(self, moment: datetime) -> None:
        """Shift gateway time to this moment; it goes on from there."""
        self.shift += moment - self.now()
        self._moved()

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        """Return when `wake` is set, when `until` is reached, or when the clock was moved."""
        seconds = None
        if until is not None:
            seconds = max((until - self.now()).total_seconds(), RESOLUTION_S)
        await self._wait(wake, seconds)


class VirtualClock(_Clock):
    """Gateway time stands still until it is moved; for tests, which never sleep."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, 9, tzinfo=UTC)) -> None:
        super().__init__()
        self._start = self._now = start

    def now(self) -> datetime:
        """Gateway time, in UTC."""
        return self._now

    @property
    def shift(self) -> timedelta:
        """How far it was moved since it was made."""
        return self._now - self._start

    async def pause(self, seconds: float) -> None:
        """Nobody waits for real time here."""
        await asyncio.sleep(0)

    def move_to(self, moment: datetime) -> None:
        """Gateway time is this moment from now on."""
        self._now = moment
        self._moved()

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        """Return when `wake` is set or somebody moves the clock."""
        if until is None or until > self._now:
            await self._wait(wake, None)
