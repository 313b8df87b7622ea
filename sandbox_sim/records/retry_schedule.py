"""The retry schedule of callbacks: how many attempts, the time between them, and their timeout."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """At most `attempts`, each with a timeout, and an `interval` after each failed one (D30)."""

    attempts: int
    interval: timedelta
    timeout: timedelta

    def next_attempt_at(self, number: int, at: datetime) -> datetime | None:
        """When the attempt after this failed one, which ended `at`, is due; None after the last.

        number: of the failed attempt, from 1.
        """
        return at + self.interval if number < self.attempts else None
