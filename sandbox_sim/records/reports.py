"""What a network says about an attempt, and its outcome in one word. Source: D39.

Only what the network confirmed is final. A timeout, a reset, an HTTP 5xx, an unlisted word, an
answer that cannot be read, and a status query that does not find the reference are all UNKNOWN.
"""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple

from sandbox_sim.operations import Operation
from sandbox_sim.records.transactions import Status


class Outcome(StrEnum):
    """What is known of an attempt.

    not_sent: not a byte of the request can have arrived.
    refused: the network said no before it took the request.
    pending: the network has it and has not decided.
    reversed: it succeeded, and then the network took it back (D45).
    """

    NOT_SENT = "not_sent"
    REFUSED = "refused"
    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REVERSED = "reversed"
    UNKNOWN = "unknown"


# The outcomes of which the network took nothing.
NEVER_TAKEN: Final = frozenset({Outcome.NOT_SENT, Outcome.REFUSED})

# The outcomes under which the network moved no money, or has moved it back.
WITHOUT_MONEY: Final = NEVER_TAKEN | {Outcome.FAILED, Outcome.REVERSED}

FINAL: Final = WITHOUT_MONEY | {Outcome.SUCCEEDED}


# The status a client sees. NOT_SENT and REFUSED leave no transaction, so they have none.
_STATUSES: Final[Mapping[Outcome, Status]] = {
    Outcome.PENDING: Status.PENDING,
    Outcome.UNKNOWN: Status.PENDING,
    Outcome.SUCCEEDED: Status.SUCCESSFUL,
    Outcome.FAILED: Status.FAILED,
    Outcome.REVERSED: Status.FAILED,
}


def status_of(outcome: Outcome, *, cancelled: bool = False) -> Status | None:
    """The transaction status for an outcome; None where no transaction is kept.

    cancelled: the failure is a cancellation, status 003.
    """
    if outcome is Outcome.FAILED and cancelled:
        return Status.CANCELLED
    return _STATUSES.get(outcome)


class Source(StrEnum):
    """How a report of a network reached us."""

    SUBMIT = "submit"  # the answer to the request itself
    STATUS = "status"  # the answer to a status query
    NOTIFICATION = "notification"  # a verified notification; a hint does not count


class Field(StrEnum):
    """The fields of a request that a network may send back, in the order of `Echo`."""

    REFERENCE = "reference"
    AMOUNT = "amount"
    CURRENCY = "currency"
    OPERATION = "operation"


class Echo(NamedTuple):
    """What the network says it did; None where it does not say."""

    reference: str | None = None
    amount: Decimal | None = None
    currency: str | None = None
    operation: Operation | None = None


EMPTY_ECHO: Final = Echo()


class Report(NamedTuple):
    """What a network says about one attempt, once.

    found: False where a status query did not find the reference.
    cancelled: a failure that is a cancellation by the customer.
    network_id: the network's own identifier, empty where it gives none.
    reason: why it failed or was refused, in the network's words.
    may_pass: a refusal that is not of the request itself, so the same one may be taken later.
    """

    outcome: Outcome
    source: Source
    echo: Echo = EMPTY_ECHO
    found: bool = True
    cancelled: bool = False
    network_id: str = ""
    reason: str = ""
    may_pass: bool = False


# The fields that a network always sends with a success, each with where it sends them.
AlwaysSent = frozenset[tuple[Source, Field]]

NOTHING_PROMISED: Final[AlwaysSent] = frozenset()


def differences(report: Report, sent: Echo, always_sent: AlwaysSent) -> tuple[str, ...]:
    """What in the report is not what was sent, in words; empty where nothing differs.

    A missing field differs only in a success, and only where the network always sends it.
    """
    found = []
    for field, echoed, expected in zip(Field, report.echo, sent, strict=True):
        if echoed is None:
            if report.outcome is Outcome.SUCCEEDED and (report.source, field) in always_sent:
                found.append(f"{field} is missing")
        elif not _equal(echoed, expected):
            found.append(f"{field} is {echoed} and not {expected}")
    return tuple(found)


def _equal(echoed: object, expected: object) -> bool:
    """Whether they are equal. NaN equals nothing, and a signalling NaN raises when compared."""
    if isinstance(echoed, Decimal) and not echoed.is_finite():
        return False
    return echoed == expected
