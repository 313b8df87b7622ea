"""The six payment operations: decided by the sandbox rules, kept, and settled later.

Source: service.1 to service.5, D14 to D16.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from sandbox_sim.domain import msisdn
from sandbox_sim.domain.checkout import PAY_PAGES, Checkout
from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.codes import Reply
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.outcomes import Facts, Sandbox, decide
from sandbox_sim.domain.overrides import Override
from sandbox_sim.domain.payments import Payment
from sandbox_sim.domain.transactions import Status, Transaction
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.accounts import Accounts
from sandbox_sim.gateway.deliveries import AnswerGate
from sandbox_sim.gateway.overrides import Overrides
from sandbox_sim.gateway.ports import Clock, Ids, Store, Unit

# D15: these leave a transaction that can be queried.
LEAVE_A_RECORD = frozenset({"202", "000", "015"})
REPEATED = (
    "the service has used this transaction_id before; the newer transaction replaces the older"
)
IN_233_FORM = (
    "customer_number is in the 233 form, which payments take only because of the setting "
    "accept_international"
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
        overrides: Overrides,
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
        self._overrides = overrides
        self._sandbox = sandbox
        self._settle_delay = settle_delay
        self._auto_complete = auto_complete

    async def submit(
        self, payment: Payment, client: Client, our_address: Callable[[], str]
    ) -> Reply:
        """Decide a payment and keep what it leaves behind, in one unit of work.

        our_address: tells where we are served. The callback waits for whoever writes the answer
        to release `Reply.awaited_by`.
        """
        now = self._clock.now()
        network_id = self._ids.network_transaction_id()
        self._gate.hold(network_id)
        try:
            reply, override = await self._store.run(
                lambda unit: self._submit(unit, payment, client, our_address, network_id, now)
            )
            if override is not None and override.callback.before_response:
                self._gate.release(network_id)
                await self._overrides.first_attempt(payment.service_id, network_id)
        except BaseException:
            self._gate.release(network_id)
            raise
        return reply

    async def _submit(
        self,
        unit: Unit,
        payment: Payment,
        client: Client,
        our_address: Callable[[], str],
        network_id: str,
        now: datetime,
    ) -> tuple[Reply, Override | None]:
        operation = payment.operation
        repeated = await unit.transaction(payment.service_id, payment.transaction_id) is not None
        account = self._accounts.checked(operation)
        available = None
        if account is not None:
            available = await self._accounts.reported(unit, payment.service_id, account, now)
        usual = decide(payment, self._sandbox, Facts(repeated, available))
        outcome, override = await self._overrides.decide(unit, payment, usual)
        fields: dict[str, object] | None = None
        if outcome.code in LEAVE_A_RECORD:
            transaction = Transaction(
                payment.kept(), network_id, client.client_key, now, override=override
            )
            if outcome.code == "202":
                await self._keep(unit, transaction)
                due = now + self._settle_delay
                job = Job(due, JobKind.SETTLE, payment.service_id, network_id)
                await self._settle_later(unit, transaction, job)
                if operation is Operation.PAYOUT:
                    fields = {"status": "success"}
            elif outcome.code == "000":
                await self._keep(unit, transaction)
                checkout_id = await self._open_page(unit, payment, transaction)
                fields = {"redirect_url": f"{our_address()}{PAY_PAGES}/{checkout_id}"}
            else:
                # The failure simulation: from 002 to 001 in the same step (D16).
                await unit.add_transaction(transaction.moved(Status.FAILED, now))
        reply = Reply(
            outcome.code,
            outcome.rule,
            outcome.why,
            outcome.message,
            fields,
            warnings=_warnings(payment, repeated),
            awaited_by=network_id,
        )
        return reply, override

    async def _keep(self, unit: Unit, transaction: Transaction) -> None:
        """Save a new transaction, and what it spends."""
        await unit.add_transaction(transaction)
        if self._accounts.live:
            await self._accounts.move(unit, transaction)

    async def _open_page(self, unit: Unit, payment: Payment, transaction: Transaction) -> str:
        """Make the hosted page of a card payment; returns its id."""
        checkout = Checkout(
            id=self._ids.token(),
            service_id=payment.service_id,
            network_transaction_id=transaction.network_transaction_id,
            expires_at=transaction.expires_at,
        )
        await unit.save_checkout(checkout)
        due = transaction.initiated_at + self._auto_complete
        job = Job(due, JobKind.SETTLE_CARD, payment.service_id, checkout.id)
        await self._settle_later(unit, transaction, job if self._auto_complete else None)
        return checkout.id

    async def _settle_later(self, unit: Unit, transaction: Transaction, job: Job | None) -> None:
        """Have a transaction settled by a job, or as its override says."""
        if transaction.override is not None:
            await self._overrides.settle_later(unit, transaction, job)
        elif job is not None:
            await unit.add_job(job)


def _warnings(payment: Payment, repeated: bool) -> tuple[str, ...]:
    """What is taken here and still worth a word."""
    found = [REPEATED] if repeated else []
    if payment.is_mobile and payment.party.startswith(msisdn.COUNTRY_CODE):
        found.append(IN_233_FORM)
    return tuple(found)
