"""The six payment operations: decided by the sandbox rules, kept, and settled later."""

from dataclasses import replace
from datetime import datetime, timedelta

from sandbox_sim.domain.checkout import Checkout
from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.codes import Reply
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.outcomes import Facts, Sandbox, decide
from sandbox_sim.domain.payments import Payment
from sandbox_sim.domain.transactions import STATUS_RETENTION, Change, Status, Transaction
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.accounts import Accounts
from sandbox_sim.gateway.deliveries import AnswerGate
from sandbox_sim.gateway.ports import Clock, Ids, Store, Unit

REPEATED = (
    "the service has used this transaction_id before; the newer transaction replaces the older"
)


class Payments:
    """settle_delay: from the 202 to the success; auto_complete: of a card page nobody opens."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        accounts: Accounts,
        gate: AnswerGate,
        *,
        sandbox: Sandbox,
        settle_delay: timedelta,
        auto_complete: timedelta,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._accounts = accounts
        self._gate = gate
        self._sandbox = sandbox
        self._settle_delay = settle_delay
        self._auto_complete = auto_complete

    async def submit(self, payment: Payment, client: Client, pay_page: str) -> Reply:
        """Decide a payment and keep what it leaves behind, in one unit of work.

        pay_page: the address of the hosted pages, ending in a slash. The callback waits for
        whoever writes the answer to release `Reply.awaited_by`.
        """
        transaction = self._transaction(payment, client)
        held = transaction.network_transaction_id
        self._gate.hold(held)
        try:
            reply = await self._store.run(
                lambda unit: self._submit(unit, payment, transaction, pay_page)
            )
        except BaseException:
            self._gate.release(held)
            raise
        return replace(reply, awaited_by=held)

    async def _submit(
        self, unit: Unit, payment: Payment, transaction: Transaction, pay_page: str
    ) -> Reply:
        now = transaction.timeline[0].at
        facts = Facts(
            repeated=await unit.transaction(payment.service_id, payment.transaction_id) is not None,
            available=await self._accounts.available(
                unit, payment.service_id, payment.operation, now
            ),
        )
        outcome = decide(payment, self._sandbox, facts)
        fields: dict[str, object] = {}
        if outcome.code == "015":
            # The failure simulation: from 002 to 001 in the same step (D16).
            await self._keep(unit, transaction.moved(Status.FAILED, now), now)
        elif outcome.code == "000":
            checkout_id = await self._open_page(unit, payment, transaction)
            fields["redirect_url"] = pay_page + checkout_id
        elif outcome.code == "202":
            due = now + self._settle_delay
            await self._keep(unit, transaction, due)
            subject = transaction.network_transaction_id
            await unit.add_job(Job(due, JobKind.SETTLE, payment.service_id, subject))
            if payment.operation is Operation.PAYOUT:
                fields["status"] = "success"
        return Reply(
            outcome.code,
            outcome.rule,
            outcome.why,
            outcome.message,
            fields,
            warnings=(REPEATED,) if facts.repeated else (),
        )

    async def _keep(self, unit: Unit, transaction: Transaction, needed_until: datetime) -> None:
        """Save a new transaction, and what it spends."""
        if transaction.status is Status.PENDING:
            await self._accounts.move(unit, transaction)
        expires_at = transaction.timeline[0].at + STATUS_RETENTION
        await unit.save_transaction(transaction, max(expires_at, needed_until))

    async def _open_page(self, unit: Unit, payment: Payment, transaction: Transaction) -> str:
        """Make the hosted page of a card payment; returns its id."""
        now = transaction.timeline[0].at
        checkout = Checkout(
            id=self._ids.token(),
            service_id=payment.service_id,
            network_transaction_id=transaction.network_transaction_id,
            landing_page=payment.landing_page,
            asks_for_card=payment.asks_for_card,
            expires_at=now + STATUS_RETENTION,
        )
        await self._keep(unit, transaction, now + self._auto_complete)
        await unit.save_checkout(checkout)
        if self._auto_complete:
            due = now + self._auto_complete
            await unit.add_job(Job(due, JobKind.SETTLE_CARD, payment.service_id, checkout.id))
        return checkout.id

    def _transaction(self, payment: Payment, client: Client) -> Transaction:
        now = self._clock.now()
        return Transaction(
            network_transaction_id=self._ids.network_transaction_id(),
            service_id=payment.service_id,
            transaction_id=payment.transaction_id,
            operation=payment.operation,
            amount=payment.amount,
            nw=payment.nw,
            party=payment.shown_party,
            payment_mode=payment.payment_mode,
            reference=payment.reference,
            currency_code=payment.currency_code,
            callback_url=payment.callback_url,
            client_key=client.client_key,
            timeline=(Change(Status.PENDING, now),),
            expires_at=now + STATUS_RETENTION,
        )
