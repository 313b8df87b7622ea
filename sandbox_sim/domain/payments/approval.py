"""Approval on the handset: the payer enters a PIN and approves, or declines. Source: D33.

With the setting `approval` on, a collection or deposit from a wallet follows an override of our
own: it becomes 003 when the prompt times out. So the wait is stored with the transaction, and its
end is the job that settles it.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from sandbox_sim.domain.control.overrides import Override
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.vocabulary import Operation

# The rule of the answer, in `X-Sandbox-Rule` and in the journal.
APPROVAL_RULE: Final = "D33"
# The path of the handset pages, below the address that clients reach the server at.
HANDSET_PAGES: Final = "/_sandbox/handset"
# How the `id` of the override begins; the id of a user's override that applies too follows.
_APPROVAL: Final = "approval"
_ASKED: Final = frozenset({Operation.COLLECT, Operation.DEPOSIT})


class Decision(StrEnum):
    """What the payer answers to the prompt: one button each."""

    APPROVE = "approve"
    DECLINE = "decline"


STATUS_OF: Final = MappingProxyType(
    {Decision.APPROVE: Status.SUCCESSFUL, Decision.DECLINE: Status.FAILED}
)


class Prompt(NamedTuple):
    """A payment that waits for the payer. times_out_at: when it becomes 003."""

    transaction: Transaction
    times_out_at: datetime


def approval_override(
    payment: Payment, timeout: timedelta, decided_by: Override | None
) -> Override | None:
    """What a payment follows that the payer has to approve; None where no prompt comes.

    decided_by: the override that applies to the payment. One that sets the outcome, or asks for
    the callback before the answer, leaves the payer nothing to decide. Its delay does not apply.
    """
    if payment.operation not in _ASKED or not payment.is_mobile:
        return None
    delay_ms = round(timeout.total_seconds() * 1000)
    if decided_by is None:
        return Override(_APPROVAL, Status.CANCELLED, delay_ms=delay_ms)
    if decided_by.decides or decided_by.callback.before_response:
        return None
    return decided_by._replace(
        id=f"{_APPROVAL} {decided_by.id}", status=Status.CANCELLED, delay_ms=delay_ms
    )


def is_approval(override_id: str) -> bool:
    """Whether the override with this id is a prompt on the handset."""
    return override_id.partition(" ")[0] == _APPROVAL


def prompt_of(transaction: Transaction) -> Prompt | None:
    """The prompt that a transaction waits for; None if it waits for none."""
    override = transaction.override
    if override is None or transaction.status is not Status.PENDING:
        return None
    if not is_approval(override.id):
        return None
    return Prompt(transaction, transaction.initiated_at + override.delay)
