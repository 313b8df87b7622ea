"""Slows all submits down while an SMSC says that it has too much load."""

from typing import Final

from sandbox_sim.adapters.networks.smpp.pauses import Pauses
from sandbox_sim.gateway.ports import Clock

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0


class Throttle:
    """A pause before the next submit, which is doubled each time, up to `LONGEST_PAUSE_S`.

    most_s: how long one part waits in all, in real time.
    """

    def __init__(self, clock: Clock, most_s: float) -> None:
        self._clock = clock
        self._most_s = most_s
        self._pause_s = 0.0
        self._slowed_at = 0.0
        self._pauses = Pauses(clock)

    async def wait(self) -> None:
        """Return when the pause is over, or when the network is closed."""
        await self._pauses.wait(self._slowed_at + self._pause_s - self._clock.monotonic())

    def slow_down(self) -> float:
        """The SMSC refused a part because of its load; returns the pause that follows."""
        now = self._clock.monotonic()
        if now >= self._slowed_at + self._pause_s:  # not twice because of parts that went together
            self._pause_s = min(self._pause_s * 2 or FIRST_PAUSE_S, LONGEST_PAUSE_S)
            self._slowed_at = now
        return self._pause_s

    def speed_up(self) -> None:
        """The SMSC took a part."""
        self._pause_s = 0.0

    def is_too_long(self, waited_s: float) -> bool:
        """Whether a part has waited long enough to be given up."""
        return waited_s > self._most_s or self._pauses.has_ended

    def close(self) -> None:
        """End all waiting."""
        self._pauses.end()
