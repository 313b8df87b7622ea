"""Work that falls due later: one kind of thing for everything asynchronous."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class JobKind(StrEnum):
    """What to do when it falls due, and what `subject` then names."""

    SETTLE = "settle"  # a payment; network_transaction_id
    SETTLE_SMS = "settle-sms"  # a send; processing_id or batch_id
    DELIVER = "deliver"  # an attempt at a callback; callback id
    LET_GO = "let-go"  # a callback that nothing overtook in time; callback id


class Job(NamedTuple):
    """A promise of the gateway: do `kind` to `subject` at `due_at`. The store numbers them."""

    due_at: datetime
    kind: JobKind
    service_id: int
    subject: str
    number: int = 0
