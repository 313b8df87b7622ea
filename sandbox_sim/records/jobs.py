"""Jobs: all work that falls due later is one kind of record."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple


class JobKind(StrEnum):
    """The kind of work, and the record that `subject` names."""

    SETTLE = "settle"  # settle a payment; network_transaction_id
    SETTLE_SMS = "settle-sms"  # settle an SMS; processing_id or batch_id
    DELIVER = "deliver"  # attempt a callback; callback id
    RELEASE = "let-go"  # release a held callback that waited too long; callback id
    DELIVER_LIVE = "deliver-live"  # attempt a callback of mode P; callback id
    ASK_NETWORK = "ask-network"  # ask a network for an outcome; attempt id
    RECHECK_FINAL = "recheck-final"  # ask for a recent final outcome again; attempt id
    SEND_SMS = "send-sms"  # send a queued SMS of mode P for the first time; attempt id
    READ_NOTIFICATION = "read-notification"  # read a notification of a network; its number


# The work of production mode: no reset and no snapshot touches it.
LIVE_KINDS: Final = frozenset(
    {
        *(JobKind.DELIVER_LIVE, JobKind.ASK_NETWORK, JobKind.RECHECK_FINAL),
        *(JobKind.SEND_SMS, JobKind.READ_NOTIFICATION),
    }
)

# Attempts at callbacks; the subject is the callback id.
DELIVERY_KINDS: Final = (JobKind.DELIVER, JobKind.DELIVER_LIVE)


# The pauses after the first failures of a job, in gateway time: 1 min, 5 min, then one day each.
RETRY_PAUSES: Final = (timedelta(minutes=1), timedelta(minutes=5))

ONCE_LISTED: Final = timedelta(days=1)

# From so many failures on, people see it in a list.
LISTED_FROM: Final = 3


class Job(NamedTuple):
    """Work to do at `due_at`: `kind`, on `subject`. The store assigns the number.

    failures: how often the work raised, in a row. A store that is away is not a failure.
    """

    due_at: datetime
    kind: JobKind
    service_id: int
    subject: str
    number: int = 0
    failures: int = 0

    @property
    def is_listed(self) -> bool:
        """Whether it failed so often that people see it in a list."""
        return self.failures >= LISTED_FROM

    def put_off(self, now: datetime) -> "Job":
        """The job of the next try, after this one failed: the one policy for all kinds."""
        pauses = dict(enumerate(RETRY_PAUSES))
        due_at = now + pauses.get(self.failures, ONCE_LISTED)
        return self._replace(due_at=due_at, number=0, failures=self.failures + 1)
