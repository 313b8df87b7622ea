"""The state of the gateway clock: shifted from the machine's time, or frozen."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class ClockState:
    """How the clock is set.

    shift: the difference to the machine's time; the time spent frozen is added on resume.
    frozen_at: the moment at which the clock stands still, or None.
    """

    shift: timedelta = timedelta()
    frozen_at: datetime | None = None

    def now(self, machine: datetime) -> datetime:
        """Gateway time when the machine's clock shows `machine`."""
        if self.frozen_at is not None:
            return self.frozen_at
        return machine + self.shift if self.shift else machine

    def moved(self, by: timedelta) -> "ClockState":
        """The clock moved by this much, forward or back; a frozen clock stays frozen."""
        return ClockState(self.shift + by, self.frozen_at and self.frozen_at + by)

    def frozen(self, machine: datetime) -> "ClockState":
        """The clock frozen at its current time."""
        return ClockState(self.shift, self.now(machine))

    def resumed(self, machine: datetime) -> "ClockState":
        """The clock running again, from the time it shows."""
        return ClockState(self.now(machine) - machine)
