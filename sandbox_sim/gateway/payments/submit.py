"""The six payment operations: decided by the sandbox rules, kept, and settled later.

Source: service.1 to service.5, D14 to D16.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from sandbox_sim.domain import msisdn
from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.control.overrides import Override
from sandbox_sim.domain.payments.card_page import PAY_PAGES, CardPage
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.payments.payment_rules import Facts, Sandbox, decide
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.response_codes import Reply
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.callbacks.callback_dispatcher import AnswerGate
from sandbox_sim.gateway.control.override_selection import Overrides
from sandbox_sim.gateway.ledger.accounts import Accounts
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
            work = partial(self._submit, payment, client, our_address, network_id, now)
            reply, override = await self._store.run(work)
            if override is not None and override.callback.before_response:
                self._gate.release(network_id)
                await self._overrides.first_attempt(payment.service_id, network_id)
        except BaseException:
            self._gate.release(network_id)
            raise
        return reply

    async def _submit(
        self,
        payment: Payment,
        client: Client,
        our_address: Callable[[], str],
        network_id: str,
        now: datetime,
        unit: Unit,
    ) -> tuple[Reply, Override | None]:
        repeated = await unit.transaction(payment.service_id, payment.transaction_id) is not None
        account = self._accounts.checked(payment.operation)
        available = None
        if account is not None:
            available = await self._accounts.reported(unit, payment.service_id, account, now)
        outcome, override = decide(payment, self._sandbox, Facts(repeated, available)), None
        if self._overrides.loaded:
            outcome, override = await self._overrides.decide(unit, payment, outcome)
        fields: dict[str, object] | None = None
        if outcome.code in LEAVE_A_RECORD:
            transaction = Transaction.start(payment, network_id, client.client_key, now, override)
            if outcome.code == "015":
                # The failure simulation: from 002 to 001 in the same step (D16).
                await unit.add_transaction(transaction.moved(Status.FAILED, now))
            else:
                fields = await self._begin(unit, transaction, outcome.code, our_address)
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

    async def _begin(
        self, unit: Unit, transaction: Transaction, code: str, our_address: Callable[[], str]
    ) -> dict[str, object] | None:
        """Keep a transaction, what it spends and how it will end; what the answer has beside it."""
        is_card = code == "000"
        delay = self._auto_complete if is_card else self._settle_delay
        if transaction.final_status is Status.PENDING or (is_card and not delay):
            transaction = transaction._replace(by_hand=True)
        await unit.add_transaction(transaction)
        if self._accounts.live:
            await self._accounts.move(unit, transaction)
        await self._overrides.settle_later(unit, transaction, transaction.initiated_at + delay)
        if is_card:
            checkout_id = await self._open_page(unit, transaction)
            return {"redirect_url": f"{our_address()}{PAY_PAGES}/{checkout_id}"}
        is_payout = transaction.payment.operation is Operation.PAYOUT
        return {"status": "success"} if is_payout else None

    async def _open_page(self, unit: Unit, transaction: Transaction) -> str:
        """Make the hosted page of a card payment; returns its id."""
        checkout = CardPage(
            id=self._ids.token(),
            service_id=transaction.service_id,
            network_transaction_id=transaction.network_transaction_id,
            expires_at=transaction.expires_at,
        )
        await unit.add_card_page(checkout)
        return checkout.id


def _warnings(payment: Payment, repeated: bool) -> tuple[str, ...]:
    """What is taken here and still worth a word."""
    found = [REPEATED] if repeated else []
    if payment.party.startswith(msisdn.COUNTRY_CODE) and payment.is_mobile:
        found.append(IN_233_FORM)
    return tuple(found)
