"""A clock whose real time passes only when a test says so."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from sandbox_sim.adapters.clock_and_ids import VirtualClock


class SteppedClock(VirtualClock):
    """Pauses and limits end in `advance`. waiting: how long each pause under way is to last."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[float] = []
        self._seconds = 0.0
        self._limits: list[asyncio.Timeout] = []
        self._due: list[tuple[float, Callable[[], None]]] = []
        self.monotonic = lambda: self._seconds

    def advance(self, seconds: float) -> None:
        """Let this much real time pass."""
        self._seconds += seconds
        due = [act for at, act in self._due if at <= self._seconds]
        self._due = [(at, act) for at, act in self._due if at > self._seconds]
        for act in due:
            act()

    async def wait_at_most(self, wake: asyncio.Event, seconds: float) -> None:
        self.waiting.append(seconds)
        over = asyncio.Event()
        self._due.append((self._seconds + seconds, over.set))
        self._wake_events.add(wake)
        waits = [asyncio.ensure_future(each.wait()) for each in (wake, over)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            self.waiting.remove(seconds)
            self._wake_events.discard(wake)
            await asyncio.gather(*waits, return_exceptions=True)

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        made = super().timeout(None)
        if seconds is not None:
            self._limits.append(made)

            def end() -> None:
                with suppress(RuntimeError):  # it ended before
                    made.reschedule(0)

            self._due.append((self._seconds + seconds, end))
        return made

    @property
    def limits(self) -> int:
        """How many limits are running."""
        return sum(_is_running(each) for each in self._limits)


def _is_running(limit: asyncio.Timeout) -> bool:
    return "[active]" in repr(limit)
