"""The time of the shop. Tests replace it, so that they never wait."""

import asyncio
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits."""

    def now(self) -> datetime:
        """The time, in UTC."""

    async def sleep(self, seconds: float) -> None:
        """Wait for this time."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """The time, in UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait for this time."""
        await asyncio.sleep(seconds)
