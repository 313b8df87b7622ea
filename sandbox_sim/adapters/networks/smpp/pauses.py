"""Pauses in real time that can be ended."""

import asyncio

from sandbox_sim.gateway.ports import Clock


class Pauses:
    """Waits of any number of tasks, which `end` ends for ever.

    They loop because `Clock.wait_at_most` also returns, with its event set, when gateway time is
    moved.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wake = asyncio.Event()
        self.has_ended = False

    async def wait(self, seconds: float) -> None:
        """Return after so much real time, or when the pauses are ended."""
        ends_at = self._clock.monotonic() + seconds
        while not self.has_ended and (left := ends_at - self._clock.monotonic()) > 0:
            self._wake.clear()
            await self._clock.wait_at_most(self._wake, left)

    def end(self) -> None:
        """End every pause, now and later."""
        self.has_ended = True
        self._wake.set()
