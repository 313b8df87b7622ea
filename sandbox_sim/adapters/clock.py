"""The only place that asks what time it is, or sleeps."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Final

# Jobs that fall due within this time are run in one go.
RESOLUTION_S: Final = 0.005


class SystemClock:
    """Gateway time is the machine's, plus a shift that `move_to` sets."""

    def __init__(self) -> None:
        self._shift = timedelta()
        self._waiting: set[asyncio.Event] = set()

    def now(self) -> datetime:
        """Gateway time, in UTC."""
        return datetime.now(UTC) + self._shift

    def monotonic(self) -> float:
        """Real time in seconds, for durations only."""
        return time.monotonic()

    def move_to(self, moment: datetime) -> None:
        """Shift gateway time to this moment; it goes on from there."""
        self._shift += moment - self.now()
        _set_all(self._waiting)

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        """Return when `wake` is set, when `until` is reached, or when the clock was moved."""
        seconds = None
        if until is not None:
            seconds = max((until - self.now()).total_seconds(), RESOLUTION_S)
        self._waiting.add(wake)
        try:
            async with asyncio.timeout(seconds):
                await wake.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(wake)


class VirtualClock:
    """Gateway time stands still until it is moved; for tests, which never sleep."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, 9, tzinfo=UTC)) -> None:
        self._now = start
        self._waiting: set[asyncio.Event] = set()

    def now(self) -> datetime:
        """Gateway time, in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Real time in seconds, for durations only."""
        return time.monotonic()

    def move_to(self, moment: datetime) -> None:
        """Gateway time is this moment from now on."""
        self._now = moment
        _set_all(self._waiting)

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        """Return when `wake` is set or somebody moves the clock."""
        if until is not None and until <= self._now:
            return
        self._waiting.add(wake)
        try:
            await wake.wait()
        finally:
            self._waiting.discard(wake)


def _set_all(events: set[asyncio.Event]) -> None:
    for event in events:
        event.set()
