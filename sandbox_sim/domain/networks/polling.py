"""When an open attempt is asked for next. Source: D39.

The first question comes after `poll_after`, each further one after twice as long, but never more
than `poll_at_most`. An attempt older than `give_up_after` is asked for once a day.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

ONCE_GIVEN_UP: Final = timedelta(days=1)
# Jitter adds up to this share, so that attempts of one outage are not all asked for at once. It
# never makes a question earlier than the schedule says.
JITTER: Final = 0.1
# Hints may come in any number; an attempt is asked for at most once in this time because of them.
BETWEEN_HINTS: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class PollingSchedule:
    """The settings `poll_after_s`, `poll_at_most_s` and `give_up_after_s` of a network."""

    poll_after: timedelta = timedelta(seconds=5)
    poll_at_most: timedelta = timedelta(seconds=300)
    give_up_after: timedelta = timedelta(seconds=86_400)

    def interval(self, polls: int) -> timedelta:
        """The time to the next question after so many, without jitter."""
        # In seconds, because a timedelta has a bound; the exponent has one because a float has.
        seconds = self.poll_after.total_seconds() * 2.0 ** min(polls, 100)
        return timedelta(seconds=min(seconds, self.poll_at_most.total_seconds()))

    def given_up(self, created_at: datetime, now: datetime) -> bool:
        """Whether an attempt is so old that it waits for a person."""
        return now - created_at >= self.give_up_after

    def next_ask(self, created_at: datetime, polls: int, now: datetime, jitter: float) -> datetime:
        """When to ask next, after `polls` questions.

        jitter: a random number, at least 0 and below 1.
        """
        given_up = self.given_up(created_at, now)
        interval = ONCE_GIVEN_UP if given_up else self.interval(polls)
        return now + interval * (1 + JITTER * jitter)


def ask_after_hint(last_asked_at: datetime | None, now: datetime) -> datetime:
    """When to ask because of a hint: now, or as soon as the last question is old enough."""
    if last_asked_at is None:
        return now
    return max(now, last_asked_at + BETWEEN_HINTS)
