"""The outcome of an attempt at a network, in one word. Source: D39.

Only what the network confirmed is final. A timeout, a reset, an HTTP 5xx, an unlisted word, an
answer that cannot be read, and a status query that does not find the reference are all UNKNOWN.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from sandbox_sim.domain.payments.transactions import Status


class Outcome(StrEnum):
    """What is known of an attempt."""

    NOT_SENT = "not_sent"  # not a byte of the request can have arrived
    REFUSED = "refused"  # the network said no before it took the request
    PENDING = "pending"  # the network has it and has not decided
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


FINAL: Final = frozenset({Outcome.NOT_SENT, Outcome.REFUSED, Outcome.SUCCEEDED, Outcome.FAILED})
# The outcomes under which the network moved no money.
WITHOUT_MONEY: Final = frozenset({Outcome.NOT_SENT, Outcome.REFUSED, Outcome.FAILED})

# The status a client sees. NOT_SENT and REFUSED leave no transaction, so they have none.
_STATUSES: Final[Mapping[Outcome, Status]] = MappingProxyType(
    {
        Outcome.PENDING: Status.PENDING,
        Outcome.UNKNOWN: Status.PENDING,
        Outcome.SUCCEEDED: Status.SUCCESSFUL,
        Outcome.FAILED: Status.FAILED,
    }
)


def status_of(outcome: Outcome, *, cancelled: bool = False) -> Status | None:
    """The transaction status for an outcome; None where no transaction is kept.

    cancelled: the failure is a cancellation, status 003.
    """
    if outcome is Outcome.FAILED and cancelled:
        return Status.CANCELLED
    return _STATUSES.get(outcome)
