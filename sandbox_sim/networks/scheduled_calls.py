"""Calls that fall due later, such as the notifications of a network that runs in this process."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from datetime import datetime
from itertools import count

from sandbox_sim.ports import Clock, RunningTasks


class ScheduledCalls:
    """Makes each call when it falls due in gateway time, one after the other, while it runs.

    A call must not raise.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # The number keeps the order of calls that fall due at the same time.
        self._due: list[tuple[datetime, int, Callable[[], Awaitable[None]]]] = []
        self._numbers = count()
        self._wake = asyncio.Event()
        self._tasks = RunningTasks()

    def start(self) -> None:
        """Start to make calls."""
        self._tasks.start(self._run())

    async def close(self) -> None:
        """Stop making calls; those that remain are made after another `start`."""
        await self._tasks.cancel()

    def add(self, due_at: datetime, call: Callable[[], Awaitable[None]]) -> None:
        """Schedule a call."""
        heapq.heappush(self._due, (due_at, next(self._numbers), call))
        self._wake.set()

    async def _run(self) -> None:
        while True:
            while self._due and self._due[0][0] <= self._clock.now():
                await heapq.heappop(self._due)[2]()
            self._wake.clear()
            await self._clock.wait(self._wake, self._due[0][0] if self._due else None)
