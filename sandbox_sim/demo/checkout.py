"""Takes an order from the form to its final state.

The order and its transaction are kept before the request is sent. So a callback finds them, and the
shop can ask for the status, even if the shop stops before the answer. A request without a clear
answer is never sent again under a new id, because the first one may have arrived.
"""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from sandbox_sim.demo.clock_and_ids import Clock, new_transaction_id, order_key
from sandbox_sim.demo.gateway_client import (
    Accepted,
    Event,
    GatewayClient,
    NoSuchTransaction,
    Refused,
    ShopSettings,
    Unanswered,
)
from sandbox_sim.demo.orders import (
    Customer,
    Delivery,
    Effect,
    Operation,
    Order,
    OrderBook,
    OrderState,
    Source,
    Status,
    Transaction,
    UnmatchedCallback,
)
from sandbox_sim.demo.texts import ENGLISH

log = logging.getLogger("sandbox_sim.demo")


class Purchase(NamedTuple):
    """A valid checkout form. id: names this use of the form."""

    id: str
    what: str
    total: Decimal
    customer: Customer
    pay_by: Operation
    delivery: Delivery | None


@dataclass(eq=False, repr=False)
class SmsNotifier:
    """Sends an SMS for each state that an order reaches. A failed SMS does not change the order."""

    gateway: GatewayClient
    clock: Clock

    async def send(self, order: Order, state: OrderState) -> None:
        """Send the SMS about a state that an order has reached, and note the result."""
        text = self._sms_text(order, state)
        phone = order.customer.phone
        try:
            refused = await self.gateway.send_sms(phone, text)
        except Unanswered as error:
            order.note(self.clock.now(), "sms_unanswered", phone=phone, why=error)
            return
        if refused is not None:
            facts = {"phone": phone, "code": refused.code, "why": refused.message}
            order.note(self.clock.now(), "sms_refused", **facts)
            return
        order.messages.append(text)
        order.note(self.clock.now(), "sms_sent", phone=phone, text=text)

    def _sms_text(self, order: Order, state: OrderState) -> str:
        text: str = ENGLISH.sms[state]
        return text.format(
            shop=ENGLISH.shop,
            number=order.number,
            currency=order.currency,
            amount=f"{order.total:.2f}",
            name=order.customer.name.split()[0],
        )


class Background:
    """Runs tasks that continue after an answer was written, and logs their exceptions."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start this work as a task."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def wait_idle(self) -> None:
        """Wait until no task runs, including tasks that are started meanwhile."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def close(self) -> None:
        """Cancel all tasks."""
        for task in self._tasks:
            task.cancel()
        await self.wait_idle()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work of the shop failed", exc_info=error)


@dataclass(eq=False, repr=False)
class Checkout:
    """Places orders, and applies the statuses that the gateway reports."""

    settings: ShopSettings
    book: OrderBook
    gateway: GatewayClient
    sms_notifier: SmsNotifier
    background: Background
    clock: Clock

    async def place(self, purchase: Purchase) -> Order:
        """Place an order and send its payment. The same purchase again returns its first order."""
        if (existing := self.book.find_by_purchase(purchase.id)) is not None:
            return existing
        order = Order(
            number=self.book.next_number(),
            key=order_key(),
            created_at=self.clock.now(),
            what=purchase.what,
            total=purchase.total,
            currency=self.settings.currency,
            customer=purchase.customer,
            pay_by=purchase.pay_by,
            delivery=purchase.delivery,
        )
        self.book.add(order, purchase.id)
        await self._pay(order)
        return order

    async def pay_again(self, order: Order) -> None:
        """Send a new payment for an order whose last one failed or was cancelled."""
        if order.can_pay_again:
            await self._pay(order)

    async def _pay(self, order: Order) -> None:
        transaction = self._begin_transaction(order, order.pay_by)
        await self._send(order, transaction, self.gateway.pay(order, transaction))

    async def _deliver(self, order: Order, delivery: Delivery) -> None:
        transaction = self._begin_transaction(order, delivery.operation)
        request = self.gateway.deliver(order, transaction, delivery)
        await self._send(order, transaction, request)

    async def _send(
        self, order: Order, transaction: Transaction, request: Awaitable[Accepted | Refused]
    ) -> None:
        facts = {"transaction_id": transaction.transaction_id}
        try:
            outcome = await request
        except Unanswered as error:
            order.note(self.clock.now(), "unanswered", **facts, why=error)
        else:
            self._apply_answer(order, transaction, outcome)
        transaction.sent_at = self.clock.now()
        if transaction.status is Status.PENDING:
            self._schedule_query(transaction)

    def _begin_transaction(self, order: Order, operation: Operation) -> Transaction:
        now = self.clock.now()
        transaction = Transaction(
            transaction_id=new_transaction_id(order.number),
            operation=operation,
            amount=order.total,
            started_at=now,
            sent_at=now,
        )
        self.book.add_transaction(order, transaction)
        return transaction

    def _apply_answer(
        self, order: Order, transaction: Transaction, outcome: Accepted | Refused
    ) -> None:
        """Apply the answer to a payment: accepted is not paid, and a refusal is final."""
        if isinstance(outcome, Refused):
            words = {"code": outcome.code, "message": outcome.message}
            detail = ENGLISH.decline_detail.format(**words)
            self._apply(order, transaction, Status.FAILED, Source.ANSWER, detail)
            transaction.reason = outcome.code
            return
        transaction.accepted = True
        transaction.payment_page = outcome.payment_page
        kind = "accepted_card" if outcome.payment_page else "accepted"
        order.note(self.clock.now(), kind, transaction_id=transaction.transaction_id)

    def apply_event(self, event: Event) -> Effect | None:
        """Apply a genuine callback; return None if no order has its transaction."""
        found = self.book.find_by_transaction(event.transaction_id)
        now = self.clock.now()
        if found is None:
            log.warning("a callback about a transaction that no order has")
            unmatched = UnmatchedCallback(now, event.transaction_id, event.status, event.amount)
            self.book.add_unmatched(unmatched)
            return None
        order, transaction = found
        expected, received = (transaction.amount, order.currency), (event.amount, event.currency)
        if expected != received:
            self._flag_wrong_amount(order, transaction, event)
            return Effect.CONTRADICTED
        return self._apply(order, transaction, event.status, Source.CALLBACK, event.detail)

    def _flag_wrong_amount(self, order: Order, transaction: Transaction, event: Event) -> None:
        facts = {
            "transaction_id": transaction.transaction_id,
            "came": f"{event.currency} {event.amount}",
            "wanted": f"{order.currency} {transaction.amount}",
        }
        if not order.notes or dict(order.notes[-1].facts) != facts:
            order.flag(self.clock.now(), "wrong_amount", **facts)

    async def query_status(self, order: Order, transaction: Transaction) -> None:
        """Query the status of a transaction, and apply the answer.

        Does nothing if the transaction is final, or if its request has not ended.
        """
        if transaction.query_at is None:
            return
        transaction.queries += 1
        self._schedule_query(transaction)
        facts = {"transaction_id": transaction.transaction_id}
        try:
            found = await self.gateway.status(transaction.transaction_id)
        except Unanswered as error:
            order.note(self.clock.now(), "no_answer", **facts, why=error)
            return
        if transaction.status is not Status.PENDING:  # a callback came meanwhile
            return
        if isinstance(found, NoSuchTransaction):
            self._handle_unknown_transaction(order, transaction)
            return
        effect = self._apply(order, transaction, found.status, Source.STATUS_QUERY, found.detail)
        if effect is Effect.STILL_PENDING:
            if transaction.queries == 1:
                order.note(self.clock.now(), "asked", **facts)
            transaction.accepted = True

    def _handle_unknown_transaction(self, order: Order, transaction: Transaction) -> None:
        """Decide about a transaction that the gateway does not know.

        If the gateway once accepted the request, its record has expired, and a person must decide.
        If not, the request never arrived, unless it was sent so recently that it may still arrive.
        """
        facts = {"transaction_id": transaction.transaction_id}
        now = self.clock.now()
        if transaction.accepted:
            transaction.query_at = None
            order.flag(now, "record_gone", **facts)
        elif now - transaction.sent_at >= timedelta(seconds=self.settings.arrives_within_s):
            order.note(now, "never_arrived", **facts)
            detail = ENGLISH.never_arrived
            self._apply(order, transaction, Status.FAILED, Source.STATUS_QUERY, detail)

    def _schedule_query(self, transaction: Transaction) -> None:
        wait_s = self.settings.first_query_after_s * 2 ** min(transaction.queries, 20)
        wait_s = min(wait_s, self.settings.longest_query_interval_s)
        transaction.query_at = self.clock.now() + timedelta(seconds=wait_s)

    def _apply(
        self, order: Order, transaction: Transaction, status: Status, source: Source, detail: str
    ) -> Effect:
        effect = order.apply(transaction, status, source, self.clock.now(), detail)
        if effect is Effect.APPLIED and not transaction.operation.is_delivery:
            self.background.start(self.sms_notifier.send(order, order.state))
            if order.state is OrderState.PROCESSING and order.delivery is not None:
                self.background.start(self._deliver(order, order.delivery))
        return effect
