"""Gateway time beside the machine's: so far away from it, or standing still."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class ClockState:
    """How a clock is set.

    shift: how far it was moved away from the machine's time; what it stood still for is counted
    when it goes on. frozen_at: the moment at which it stands still, or None.
    """

    shift: timedelta = timedelta()
    frozen_at: datetime | None = None

    def now(self, machine: datetime) -> datetime:
        """Gateway time when the machine has this time."""
        return self.frozen_at or machine + self.shift

    def moved(self, by: timedelta) -> "ClockState":
        """So much later, or earlier; one that stands still goes on doing so."""
        return ClockState(self.shift + by, self.frozen_at and self.frozen_at + by)

    def frozen(self, machine: datetime) -> "ClockState":
        """Standing still from now on."""
        return ClockState(self.shift, self.now(machine))

    def resumed(self, machine: datetime) -> "ClockState":
        """Going on from where it is."""
        return ClockState(self.now(machine) - machine)
