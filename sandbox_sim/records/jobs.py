"""Jobs: all work that falls due later is one kind of record."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple


class JobKind(StrEnum):
    """The kind of work, with the meaning of `subject` in brackets.

    settle: decide a payment (network_transaction_id).
    settle-sms: decide an SMS or a bulk send (processing_id or batch_id).
    deliver: attempt a callback (its id).
    let-go: release a callback that an override holds back (its id).
    deliver-live: attempt a callback of mode P (its id).
    ask-network: ask a network for an outcome (id of the attempt).
    recheck-final: ask for a recent final outcome again (id of the attempt).
    send-sms: send a queued SMS of mode P for the first time (id of the attempt).
    read-notification: read a notification of a network (its number).
    """

    SETTLE = "settle"
    SETTLE_SMS = "settle-sms"
    DELIVER = "deliver"
    RELEASE = "let-go"
    DELIVER_LIVE = "deliver-live"
    ASK_NETWORK = "ask-network"
    RECHECK_FINAL = "recheck-final"
    SEND_SMS = "send-sms"
    READ_NOTIFICATION = "read-notification"


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

PAUSE_ONCE_LISTED: Final = timedelta(days=1)

# A job with this many failures is in a list that people see.
LISTED_AFTER: Final = 3


class Job(NamedTuple):
    """Work to do at `due_at`: `kind`, on `subject`. The store assigns the number.

    failures: how often the work raised, in a row, or a query that a hint caused had no answer. A
    store that is away is not a failure.
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
        return self.failures >= LISTED_AFTER

    def rescheduled(self, now: datetime) -> "Job":
        """The job of the next try, after this one failed: the one policy for all kinds."""
        pause = (*RETRY_PAUSES, PAUSE_ONCE_LISTED)[min(self.failures, len(RETRY_PAUSES))]
        return self._replace(due_at=now + pause, failures=self.failures + 1)
