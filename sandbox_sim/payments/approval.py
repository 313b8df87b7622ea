"""Approval on the handset: the payer enters a PIN and approves, or declines. Source: D33.

With the setting `approval` on, a collection or deposit from a wallet gets an override that the
gateway makes: the payment becomes 003 when the prompt times out. So the wait is stored with the
transaction, and the job that settles it ends the wait.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple, TypeVar

from sandbox_sim.operations import PAYMENTS, Party
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.payments.settlement import Settlement
from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import Message
from sandbox_sim.records.overrides import Override
from sandbox_sim.records.transactions import Payment, Status, TransactionRecord
from sandbox_sim.values import msisdn
from sandbox_sim.values.clients import ServiceMode

# The rule of the answer, in `X-Sandbox-Rule` and in the journal.
APPROVAL_RULE: Final = "D33"

# The path of the handset pages, below the address that clients reach the server at.
HANDSET_PAGES: Final = "/_sandbox/handset"

# The `id` of the override; the id of a user's override that applies too follows after a space.
_APPROVAL_ID: Final = "approval"

PROMPTED_OPERATIONS: Final = frozenset(
    each for each, row in PAYMENTS.items() if each.row.fills and row.party is Party.PHONE
)


class PromptDecision(StrEnum):
    """The payer's answer to the prompt: one button each."""

    APPROVE = "approve"
    DECLINE = "decline"


_STATUS_OF_DECISION: Final[Mapping[PromptDecision, Status]] = {
    PromptDecision.APPROVE: Status.SUCCESSFUL,
    PromptDecision.DECLINE: Status.FAILED,
}


class Prompt(NamedTuple):
    """A payment that waits for the payer. times_out_at: when it becomes 003."""

    transaction: TransactionRecord
    times_out_at: datetime


def approval_override(
    payment: Payment, timeout: timedelta, user_override: Override | None
) -> Override | None:
    """The override of a payment that the payer must approve; None if the payer gets no prompt.

    user_override: the override that applies to the payment. There is no prompt if it sets the
    outcome, or asks for the callback before the answer. Its delay does not apply.
    """
    if payment.operation not in PROMPTED_OPERATIONS or not payment.is_mobile:
        return None
    delay_ms = round(timeout.total_seconds() * 1000)
    if user_override is None:
        return Override(_APPROVAL_ID, Status.CANCELLED, delay_ms=delay_ms)
    if user_override.decides or user_override.callback.before_response:
        return None
    return user_override._replace(
        id=f"{_APPROVAL_ID} {user_override.id}", status=Status.CANCELLED, delay_ms=delay_ms
    )


def is_approval(override_id: str) -> bool:
    """Whether the override with this id is a prompt on the handset."""
    return override_id.partition(" ")[0] == _APPROVAL_ID


def prompt_of(transaction: TransactionRecord) -> Prompt | None:
    """The open prompt of a transaction, or None."""
    override = transaction.override
    if override is None or transaction.status is not Status.PENDING or not is_approval(override.id):
        return None
    return Prompt(transaction, transaction.initiated_at + override.delay)


# A handset searches this many of the newest records of each kind, `_PAGE_SIZE` in one unit of work.
_MAX_READ: Final = 5_000

_PAGE_SIZE: Final = 500

_MAX_MESSAGES: Final = 50

# Networks send their own prompts to the payers of mode P.
_MODE: Final = ServiceMode.SANDBOX


R = TypeVar("R", Message, TransactionRecord)


class HandsetRecords(NamedTuple):
    """What a handset shows. messages: newest first. prompts: oldest first."""

    messages: Sequence[Message]
    prompts: Sequence[Prompt]


class Answered(NamedTuple):
    """The transaction after an answer, and whether it was waiting for one."""

    transaction: TransactionRecord
    was_waiting: bool


@dataclass(eq=False, repr=False)
class Handsets:
    """The handsets of all numbers that the allowlist accepts; `number` is in local form."""

    store: Store
    clock: Clock
    settlement: Settlement
    behaviour: BehaviourHolder

    def number_of(self, number: str) -> str | None:
        """The local form of a number in either form; None if sandbox does not accept it."""
        local, allowlist = msisdn.to_local(number), self.behaviour.present.allowlist
        return local if local is not None and allowlist.allows(local) else None

    async def view(self, number: str) -> HandsetRecords:
        """The newest SMS to a number, and its open prompts."""
        forms = {number, msisdn.to_international(number)}
        messages = [
            each
            async for each in self._newest(
                lambda page, unit: unit.list_messages(page), lambda each: each.processing_id
            )
            if each.customer_number in forms
        ]
        prompts = [
            prompt
            async for each in self._newest(
                lambda page, unit: unit.list_transactions(page._replace(mode=_MODE)),
                lambda each: each.network_transaction_id,
            )
            if each.payment.party in forms and (prompt := prompt_of(each)) is not None
        ]
        return HandsetRecords(messages[:_MAX_MESSAGES], prompts[::-1])

    async def answer(
        self, number: str, service_id: int, network_transaction_id: str, decision: PromptDecision
    ) -> Answered | None:
        """Approve or decline a payment, with its callback; None if this number does not pay it.

        An answer after the prompt has timed out, or a second one, changes nothing.
        """
        forms = {number, msisdn.to_international(number)}

        async def work(unit: Unit) -> Answered | None:
            transaction = await unit.transaction_by_network_id(service_id, network_transaction_id)
            if transaction is None or transaction.payment.party not in forms:
                return None
            prompt, now = prompt_of(transaction), self.clock.now()
            if prompt is None or prompt.times_out_at <= now:
                return Answered(transaction, was_waiting=False)
            status = _STATUS_OF_DECISION[decision]
            decided = await self.settlement.conclude(unit, transaction, status, now)
            return Answered(decided, was_waiting=True)

        return await self.store.run(work)

    async def _newest(
        self,
        list_page: Callable[[Listing, Unit], Awaitable[Sequence[R]]],
        id_of: Callable[[R], str],
    ) -> AsyncIterator[R]:
        """The newest records of all services; other work runs between two pages."""
        after: str | None = None
        for _ in range(_MAX_READ // _PAGE_SIZE):
            page = Listing(None, after, _PAGE_SIZE)
            records = await self.store.run(partial(list_page, page))
            for each in records:
                yield each
            if len(records) < _PAGE_SIZE:
                return
            after = id_of(records[-1])
            await self.clock.pause(0)
