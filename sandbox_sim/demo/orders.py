"""An order, its payments and its states, and the book of all orders.

An order begins as Pending payment. Only a final status of the gateway moves it on, to Processing,
Failed or Cancelled; the status comes by callback, by status query, or as a refusal of the request.
A final status is never overwritten: the same one again changes nothing, and another one becomes a
note for the staff, who decide.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple

# In memory; a real shop keeps its orders in its database.
_MAX_ORDERS: Final = 1000
_MAX_UNMATCHED: Final = 50


class OrderState(StrEnum):
    """The states of an order, as the storefront plugin names them."""

    PENDING_PAYMENT = "pending_payment"
    PROCESSING = "processing"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Status(StrEnum):
    """The status of a transaction at the gateway."""

    SUCCESSFUL = "000"
    FAILED = "001"
    PENDING = "002"
    CANCELLED = "003"


_STATE_OF_STATUS: Final = {
    Status.SUCCESSFUL: OrderState.PROCESSING,
    Status.FAILED: OrderState.FAILED,
    Status.CANCELLED: OrderState.CANCELLED,
}


class Source(StrEnum):
    """The source of a status."""

    CALLBACK = "callback"
    STATUS_QUERY = "status_query"
    ANSWER = "answer"


class Operation(StrEnum):
    """What a transaction does."""

    MOBILE_MONEY = "mobile_money"
    CARD = "card"
    AIRTIME = "airtime"
    BILL = "bill"

    @property
    def is_delivery(self) -> bool:
        """Whether the shop pays and not the customer: for airtime or a bill that was bought."""
        return self in {Operation.AIRTIME, Operation.BILL}


class Effect(StrEnum):
    """The effect of a status on its order."""

    APPLIED = "applied"
    REPEATED = "repeated"
    STILL_PENDING = "still_pending"
    CONTRADICTED = "contradicted"


class Customer(NamedTuple):
    """A customer.

    phone: in local form, ten digits; it pays by mobile money and gets the SMS. nw: its network.
    """

    name: str
    phone: str
    nw: str


class Delivery(NamedTuple):
    """Where airtime or the payment of a bill goes.

    nw: the network, or the product code of the bill. account: the phone or the account number.
    """

    operation: Operation
    nw: str
    account: str


class Note(NamedTuple):
    """A note on an order. Its words are in texts.toml under `notes`, filled with `facts`."""

    at: datetime
    kind: str
    facts: Mapping[str, str]


@dataclass(slots=True)
class Transaction:
    """One payment of an order, or the delivery of airtime or of the payment of a bill.

    sent_at: when the request was answered or given up. accepted: the gateway has answered that it
    took the request. query_at: when the shop queries the status next; None: never, or not before
    the request has ended. payment_page: where the customer pays by card.
    """

    transaction_id: str
    operation: Operation
    amount: Decimal
    started_at: datetime
    sent_at: datetime
    status: Status = Status.PENDING
    accepted: bool = False
    reason: str = ""
    payment_page: str = ""
    query_at: datetime | None = None
    queries: int = 0


@dataclass(slots=True)
class Order:
    """An order of a customer.

    key: the secret part of its address. version: grows with each change, so that a page knows
    whether to load itself again. needs_attention: the staff have to decide something.
    """

    number: int
    key: str
    created_at: datetime
    what: str
    total: Decimal
    currency: str
    customer: Customer
    pay_by: Operation
    delivery: Delivery | None = None
    state: OrderState = OrderState.PENDING_PAYMENT
    needs_attention: bool = False
    transactions: list[Transaction] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    version: int = 0

    @property
    def payment(self) -> Transaction | None:
        """The newest payment by the customer."""
        paid_by = [each for each in self.transactions if not each.operation.is_delivery]
        return paid_by[-1] if paid_by else None

    @property
    def delivery_transaction(self) -> Transaction | None:
        """The transaction that delivers airtime or pays the bill, once it has begun."""
        return next((each for each in self.transactions if each.operation.is_delivery), None)

    @property
    def can_pay_again(self) -> bool:
        """Whether the customer may pay again: the last payment is known to have failed."""
        return self.state in {OrderState.FAILED, OrderState.CANCELLED} and not self.needs_attention

    @property
    def is_waiting(self) -> bool:
        """Whether a transaction has no final status yet."""
        return any(each.status is Status.PENDING for each in self.transactions)

    def note(self, at: datetime, kind: str, **facts: object) -> None:
        """Add a note."""
        self.notes.append(Note(at, kind, {name: str(fact) for name, fact in facts.items()}))
        self.version += 1

    def flag(self, at: datetime, kind: str, **facts: object) -> None:
        """Add a note that the staff have to act on."""
        self.needs_attention = True
        self.note(at, kind, **facts)

    def add_transaction(self, transaction: Transaction) -> None:
        """Add a transaction before its request is sent, so that no callback can come too early."""
        self.transactions.append(transaction)
        if not transaction.operation.is_delivery:
            self.state = OrderState.PENDING_PAYMENT
        facts = {"transaction_id": transaction.transaction_id}
        self.note(transaction.started_at, f"begun_{transaction.operation}", **facts)

    def apply(
        self, transaction: Transaction, status: Status, source: Source, now: datetime, detail: str
    ) -> Effect:
        """Apply a status to a transaction of this order. Returns what it did.

        detail: the words of the gateway, for the note.
        """
        facts = {"source": source, "detail": detail, "transaction_id": transaction.transaction_id}
        if transaction.status is not Status.PENDING:
            if status in {transaction.status, Status.PENDING}:  # pending is older news
                return Effect.REPEATED
            self._flag_contradiction(transaction, status, now, facts)
            return Effect.CONTRADICTED
        if status is Status.PENDING:
            return Effect.STILL_PENDING
        transaction.status = status
        transaction.query_at = None
        transaction.reason = detail
        if transaction.operation.is_delivery:
            self._apply_delivery(status, now, facts)
        else:
            self.state = _STATE_OF_STATUS[status]
            self.note(now, f"moved_{self.state}", **facts)
        return Effect.APPLIED

    def _apply_delivery(self, status: Status, now: datetime, facts: Mapping[str, str]) -> None:
        if status is Status.SUCCESSFUL:
            self.note(now, "delivered", **facts)
        else:
            self.flag(now, "not_delivered", **facts)

    def _flag_contradiction(
        self, transaction: Transaction, status: Status, now: datetime, facts: Mapping[str, str]
    ) -> None:
        facts = {**facts, "status": status, "before": transaction.status}
        last = self.notes[-1]
        if (last.kind, last.facts) != ("contradicted", facts):
            self.flag(now, "contradicted", **facts)


class UnmatchedCallback(NamedTuple):
    """A genuine callback about a transaction that no order has."""

    at: datetime
    transaction_id: str
    status: str
    amount: Decimal


class OrderBook:
    """Orders by number, by key, by purchase and by transaction. Beyond 1,000 it drops the oldest.

    A purchase is one use of the checkout form: a form that is sent twice finds the first order.
    """

    def __init__(self) -> None:
        self._by_key: dict[str, Order] = {}
        self._by_purchase: dict[str, Order] = {}
        self._by_transaction: dict[str, tuple[Order, Transaction]] = {}
        self.next_number = itertools.count(1001).__next__
        self.unmatched: list[UnmatchedCallback] = []

    def __iter__(self) -> Iterator[Order]:
        """All orders, oldest first."""
        return iter(list(self._by_key.values()))

    def add(self, order: Order, purchase: str) -> None:
        """Add an order."""
        self._by_key[order.key] = order
        self._by_purchase[purchase] = order
        while len(self._by_key) > _MAX_ORDERS:
            self._remove(next(iter(self._by_key.values())))

    def add_transaction(self, order: Order, transaction: Transaction) -> None:
        """Add a transaction to an order."""
        order.add_transaction(transaction)
        self._by_transaction[transaction.transaction_id] = order, transaction

    def find_by_key(self, key: str) -> Order | None:
        """The order with this key."""
        return self._by_key.get(key)

    def find_by_purchase(self, purchase: str) -> Order | None:
        """The order of this use of the checkout form."""
        return self._by_purchase.get(purchase)

    def find_by_transaction(self, transaction_id: str) -> tuple[Order, Transaction] | None:
        """The order with this transaction, and the transaction."""
        return self._by_transaction.get(transaction_id)

    def add_unmatched(self, callback: UnmatchedCallback) -> None:
        """Save a callback without an order for the staff; a repeated one changes nothing."""
        same = (callback.transaction_id, callback.status)
        if all((each.transaction_id, each.status) != same for each in self.unmatched):
            self.unmatched = [*self.unmatched, callback][-_MAX_UNMATCHED:]

    def _remove(self, order: Order) -> None:
        del self._by_key[order.key]
        purchases = [name for name, each in self._by_purchase.items() if each is order]
        for purchase in purchases:
            del self._by_purchase[purchase]
        for transaction in order.transactions:
            self._by_transaction.pop(transaction.transaction_id, None)
