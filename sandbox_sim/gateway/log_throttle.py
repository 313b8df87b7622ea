"""Limits how often one kind of line is logged."""

from typing import Final

from sandbox_sim.gateway.ports import Clock

_EVERY_S: Final = 1.0


class LogThrottle:
    """Allows one line each second of real time, and counts the events in between."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next = clock.monotonic()
        self._count = 0

    def due(self) -> int:
        """Count one more event; returns how many to report now, or 0 to log nothing."""
        self._count += 1
        now = self._clock.monotonic()
        if now < self._next:
            return 0
        self._next = now + _EVERY_S
        count, self._count = self._count, 0
        return count
