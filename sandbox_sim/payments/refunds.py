"""Refunds: payouts that give the money of a collection back to its payer. Source: D45, D44.

A refund is not an operation of the interface: a person orders it, with a name and a reason, and it
has no callback. The processor of the mode handles it like a payout, but takes the money from the
collection wallet, and in mode P uses the network that collected.

The open and successful refunds of a collection never exceed what was collected: the unit that adds
a refund has locked the collection.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Final, NamedTuple

from sandbox_sim.operations import Operation
from sandbox_sim.payments.submit import PaymentDecision, PaymentProcessor, PaymentRequest
from sandbox_sim.ports import Clock, Ids, Store, Unit
from sandbox_sim.records.ledger import MOVING_KINDS, ZERO, LedgerQuery, Reason, add, subtract
from sandbox_sim.records.reports import NEVER_TAKEN, Outcome
from sandbox_sim.records.transactions import (
    Payment,
    PaymentDetails,
    Refund,
    Status,
    TransactionRecord,
    status_words,
)
from sandbox_sim.values.clients import Client, ServiceMode
from sandbox_sim.values.response_codes import Code, Reply
from sandbox_sim.values.vocabulary import PaymentOption, Wallet

# The interface demands a nickname of payouts, and some networks do too; a refund has none.
NICKNAME: Final = "Refund"

_BY_ADJUST: Final = "pay it back outside of the gateway, and correct the books with `ledger adjust`"

_ALTERNATIVE: Final = (
    "give the money back by an ordinary payout, or outside of the gateway, and correct the books "
    "with `ledger adjust`"
)

_COUNTED_STATUSES: Final = frozenset({Status.PENDING, Status.SUCCESSFUL})

_MAX_LINES: Final = 1_000


class RefundRefused(ValueError):
    """The refund was refused; the text says why, and what to do. Nothing was paid."""


class CollectionKey(NamedTuple):
    """Identifies a collection."""

    service_id: int
    network_transaction_id: str
    mode: ServiceMode


class RefundOrder(NamedTuple):
    """The order of a refund.

    amount: None for all that is left of the collection.
    transaction_id: of the refund, so that a repeated order is refused; None for a generated one.
    """

    by: str
    reason: str
    amount: Decimal | None = None
    transaction_id: str | None = None


class Refunded(NamedTuple):
    """The transaction of a refund, and the reason of its reply."""

    transaction: TransactionRecord
    why: str


@dataclass(eq=False, repr=False)
class Refunds:
    """Refunds collections of both modes.

    processors: the modes that this server serves.
    """

    store: Store
    clock: Clock
    ids: Ids
    processors: Mapping[ServiceMode, PaymentProcessor]

    def serves(self, mode: ServiceMode) -> bool:
        """Whether this server can refund collections of a mode."""
        return mode in self.processors

    async def refund(
        self, collection_key: CollectionKey, order: RefundOrder, public_address: Callable[[], str]
    ) -> Refunded:
        """Refund a collection; returns when the network, or the sandbox, has answered.

        Raises `RefundRefused` if the refund is not possible or was not accepted.
        """
        network_id = self.ids.network_transaction_id()
        work = partial(self._process, collection_key, order, network_id, public_address)
        decision = await self.store.run(work)
        reply = decision if isinstance(decision, Reply) else await decision()
        key = collection_key._replace(network_transaction_id=network_id)
        transaction = await self.store.run(lambda unit: unit.transaction_by_network_id(*key))
        if transaction is None:
            raise RefundRefused(_why_rejected(reply))
        return Refunded(transaction, reply.why)

    async def _process(
        self,
        collection_key: CollectionKey,
        order: RefundOrder,
        network_id: str,
        public_address: Callable[[], str],
        unit: Unit,
    ) -> PaymentDecision:
        collection = await unit.transaction_by_network_id(*collection_key)
        if collection is None:
            raise RefundRefused("the collection no longer exists")
        _require_collected(collection)
        await _require_no_doubt(unit, collection)
        amount = await _refund_amount(unit, collection, order.amount)
        now = self.clock.now()
        transaction_id = order.transaction_id or f"refund-{network_id}"
        payment = _refund_payment(collection, amount, transaction_id)
        request = PaymentRequest(
            payment,
            Client(collection.client_key, "", collection.mode),
            network_id,
            now,
            public_address,
            PaymentDetails(NICKNAME, request_time=now.strftime("%Y-%m-%d %H:%M:%S")),
            Refund(collection.network_transaction_id, order.by, order.reason),
        )
        return await self.processors[collection.mode].process(unit, request)


def _require_collected(transaction: TransactionRecord) -> None:
    operation, status = transaction.payment.operation, transaction.status
    if operation is Operation.CARD:
        raise RefundRefused(f"a card payment is not refunded by a payout: {_BY_ADJUST}")
    if operation is not Operation.COLLECT:
        raise RefundRefused(
            f"only a collection is refunded, and this is the operation {operation}: make a payout, "
            "or correct the books with `ledger adjust`"
        )
    if status is not Status.SUCCESSFUL:
        raise RefundRefused(
            f"only a successful collection is refunded, and this one is {status_words(status)}"
        )


async def _require_no_doubt(unit: Unit, collection: TransactionRecord) -> None:
    """Refuse while the network contradicts the collection, or its refusal of an earlier refund.

    The money may never have come, or be back with the payer already. `_may_have_paid` does not see
    a refund that was refused, because its transaction was deleted.
    """
    subject = collection.network_transaction_id
    for attempt in await unit.doubtful_attempts(collection.initiated_at):
        of_collection = attempt.network_transaction_id == subject
        of_refund = attempt.refund_of == subject and attempt.outcome in NEVER_TAKEN
        if attempt.is_doubted and (of_collection or of_refund):
            doubt = attempt.contradiction or attempt.mismatch
            what = "the collection" if of_collection else f"its refund {attempt.transaction_id}"
            raise RefundRefused(
                f"{what} is in doubt: {doubt}: look into it, decide with `transactions settle`, "
                "and refund the collection if the money came and is not paid back"
            )


async def _refund_amount(
    unit: Unit, collection: TransactionRecord, requested: Decimal | None
) -> Decimal:
    """How much a refund pays; raises `RefundRefused` for more than is left of the collection."""
    collected = await _collected_amount(unit, collection)
    remaining = collected
    for refund in await unit.refunds_of(collection):
        if await _may_have_paid(unit, refund):
            remaining = subtract(remaining, refund.payment.amount)
    total = f"{collected} {collection.payment.currency_code}"
    if remaining <= 0:
        raise RefundRefused(f"all of the {total} that was collected is refunded")
    if requested is not None and requested > remaining:
        raise RefundRefused(
            f"amount {requested} is more than what is left to refund: {remaining} of {total}"
        )
    return remaining if requested is None else requested


async def _collected_amount(unit: Unit, collection: TransactionRecord) -> Decimal:
    """The amount that was collected; in mode P a person may have settled it with another amount."""
    if collection.mode is ServiceMode.SANDBOX:
        return collection.payment.amount
    service_id, subject = collection.service_id, collection.network_transaction_id
    entered = service_id, Wallet.COLLECTION, Reason.COLLECTED, subject
    query = LedgerQuery(*entered, limit=_MAX_LINES, mode=collection.mode)
    total = ZERO
    for line in await unit.ledger_page(query):
        if line.transfer.kind in MOVING_KINDS:
            total = add(total, line.transfer.amount)
    return total


async def _may_have_paid(unit: Unit, refund: TransactionRecord) -> bool:
    """Whether a refund is open or successful, or its network contradicts its failure."""
    if refund.status in _COUNTED_STATUSES:
        return True
    attempts = await unit.attempts_of(refund.network_transaction_id)
    return any(each.contradicted_by is Outcome.SUCCEEDED for each in attempts)


def _refund_payment(collection: TransactionRecord, amount: Decimal, transaction_id: str) -> Payment:
    original = collection.payment
    return Payment(
        Operation.PAYOUT,
        original.service_id,
        transaction_id,
        f"Refund of {original.transaction_id}",
        amount,
        original.nw,
        original.party,
        PaymentOption.MOBILE_MONEY.value,
        original.currency_code,
        callback_url="",
    )


def _why_rejected(reply: Reply) -> str:
    if reply.code == Code.INSUFFICIENT_BALANCE:
        return f"{reply.why}, and a refund is taken from it"
    if reply.code == Code.DUPLICATE:
        return f"{reply.why}: it names an earlier refund or payment, which is not made again"
    return f"{reply.why}. Nothing was paid; try again later, or {_ALTERNATIVE}"
