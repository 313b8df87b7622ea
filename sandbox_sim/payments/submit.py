"""Submits payments: from a frozen `Payment` to the reply. In mode S the sandbox rules decide.

Source: service.1 to service.5, D14 to D16, D20, D33, D32.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Final, NamedTuple, Protocol

from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.operations import Operation
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.overrides.overrides import Overrides
from sandbox_sim.payments.approval import (
    APPROVAL_RULE,
    HANDSET_PAGES,
    approval_override,
    is_approval,
)
from sandbox_sim.payments.sandbox_rules import Facts, decide
from sandbox_sim.payments.settlement import Settlement
from sandbox_sim.ports import (
    AnswerGate,
    Ids,
    Store,
    Unit,
)
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.magic_outcomes import MAGIC_RULE
from sandbox_sim.records.overrides import Override, magic_override
from sandbox_sim.records.transactions import (
    NO_DETAILS,
    PAY_PAGES,
    CardPage,
    Payment,
    PaymentDetails,
    Refund,
    Status,
    TransactionRecord,
    answers_status,
)
from sandbox_sim.values import msisdn
from sandbox_sim.values.clients import Client, ServiceMode
from sandbox_sim.values.response_codes import Code, Reply


class PaymentRequest(NamedTuple):
    """A well-formed payment that a client may make.

    client: its mode has chosen the processor.
    network_transaction_id: eleven digits, new (D18); the gate holds it.
    received_at: gateway time, UTC.
    public_address: returns the address of this server for clients, without a slash at the end.
    details: the fields that only a network reads.
    refund: the collection that this payout refunds, over the network that collected; None for a
    payment of a client.
    """

    payment: Payment
    client: Client
    network_transaction_id: str
    received_at: datetime
    public_address: Callable[[], str]
    details: PaymentDetails = NO_DETAILS
    refund: Refund | None = None


# The reply to a payment, or a function that makes it after the commit and before the answer.
PaymentDecision = Reply | Callable[[], Awaitable[Reply]]


class PaymentProcessor(Protocol):
    """Decides the payments of one service mode, and saves what they leave behind.

    Mode S has `SandboxProcessor`, mode P `production/processor.py`. A payment has two steps:

    1. `process` decides inside the unit of work. It saves what the payment leaves behind: the
       transaction, postings, a card page, and jobs for what must happen later. All of it is in one
       unit, so a crash after the commit loses nothing.
    2. `process` returns the reply, or a function that makes it after the commit and before the
       answer. In that function a processor may wait for a network, because the unit of work with
       its locks is over. It can still reject, and saves its changes in units of its own.
    """

    async def process(self, unit: Unit, request: PaymentRequest) -> PaymentDecision:
        """Decide a payment, and save through `unit` all that it leaves behind, its jobs too.

        A store may call this more than once for one payment, each time with a new unit; only the
        last is committed. So it awaits only the unit, and changes nothing else.
        A rejection is a reply; an exception undoes the unit and is answered with code 500.
        """


# The outcomes that leave a transaction which can be queried (D15).
LEAVE_A_TRANSACTION: Final = frozenset({Code.RECEIVED, Code.SUCCESS, Code.DECLINED})

USED_BEFORE: Final = "the service has used this transaction_id before"

REPLACES_EARLIER: Final = f"{USED_BEFORE}; the newer transaction replaces the older"

IN_233_FORM: Final = (
    "customer_number is in the 233 form, which payments accept only because of the setting "
    "accept_international"
)

BY_LENIENT: Final = f"{IN_233_FORM}, which lenient turned on"

# Constants, because Python 3.11 takes long to find a member of an enum and to make a named tuple.
_CARD: Final = Operation.CARD

_PAYOUT: Final = Operation.PAYOUT

_NEW_FACTS: Final = Facts()

_REPEATED_FACTS: Final = Facts(repeated=True)

PESEWA: Final = Decimal("0.01")

MORE_DECIMALS: Final = "amount has more than two decimals, and the smallest unit is a pesewa, 0.01"


@dataclass(eq=False, repr=False)
class SandboxProcessor:
    """Applies the sandbox rules, or an override of the user instead."""

    ids: Ids
    accounts: Accounts
    gate: AnswerGate
    overrides: Overrides
    settlement: Settlement
    behaviour: BehaviourHolder

    async def process(self, unit: Unit, request: PaymentRequest) -> PaymentDecision:
        """Decide a payment, and save its transaction if it leaves one."""
        at, behaviour = request.received_at, self.behaviour.present
        payment = request.payment
        if behaviour.accept_international:
            payment = _without_plus(payment)
        replaced = await _newest_with_same_id(unit, payment)
        # D14 looks back as far as a status query.
        repeats = replaced is not None and answers_status(replaced, at)
        earlier = replaced if repeats else None
        is_refund = request.refund is not None
        reply = await self.decide(unit, payment, at, behaviour, earlier, is_refund=is_refund)
        override = None
        is_magic = reply.rule == MAGIC_RULE
        magic_status = behaviour.magic.status_of(payment) if is_magic else None
        if self.overrides.loaded:
            reply, override = await self.overrides.decide(unit, payment, reply)
        if magic_status is not None:
            override = magic_override(magic_status, override)
        timeout = behaviour.prompt_timeout
        if timeout is not None and reply.code == Code.RECEIVED:
            reply, override = self._with_prompt(payment, timeout, reply, override)
        reply = reply.with_warnings(_warnings(payment, behaviour, reply, earlier))
        if reply.code not in LEAVE_A_TRANSACTION:
            return reply
        network_id, client_key = request.network_transaction_id, request.client.client_key
        transaction = TransactionRecord.start(
            payment, network_id, client_key, at, override, refund=request.refund
        )
        if replaced is not None:
            await unit.save_transaction(replaced._replace(replaced_by=network_id))
        if reply.code == Code.DECLINED:
            await self.settlement.decline(unit, transaction)
            return reply
        fields = await self._accept(unit, request, transaction, behaviour)
        if fields is not None:
            reply = reply._replace(fields=fields)
        if override is None or is_refund or not override.callback.before_response:
            return reply
        return partial(self._wait_for_first_attempt, request, reply)

    async def decide(
        self,
        unit: Unit,
        payment: Payment,
        at: datetime,
        behaviour: Behaviour,
        earlier: TransactionRecord | None = None,
        *,
        is_refund: bool = False,
    ) -> Reply:
        """The reply of the rules to a payment at this moment.

        earlier: the live transaction of the service with the same `transaction_id`.
        """
        facts = _NEW_FACTS if earlier is None else _REPEATED_FACTS
        account = None
        if payment.operation.row.spends is not None:  # a collection takes nothing from a wallet
            account = self.accounts.wallet_to_check(payment.operation, is_refund=is_refund)
        if account is not None:
            available = await self.accounts.reported_balance(unit, payment.service_id, account, at)
            facts = facts._replace(available=available)
        return decide(payment, behaviour, facts)

    @staticmethod
    def _with_prompt(
        payment: Payment, timeout: timedelta, reply: Reply, override: Override | None
    ) -> tuple[Reply, Override | None]:
        """The reply and the override of a payment that the payer must approve (D33)."""
        prompt = approval_override(payment, timeout, override)
        if prompt is None:
            return reply, override
        why = (
            f"the payer is asked at {HANDSET_PAGES}/{payment.party} for "
            f"{timeout.total_seconds():g} s (setting approval)"
        )
        return reply._replace(rule=APPROVAL_RULE, why=why), prompt

    async def _accept(
        self,
        unit: Unit,
        request: PaymentRequest,
        transaction: TransactionRecord,
        behaviour: Behaviour,
    ) -> dict[str, object] | None:
        """Save the transaction and the jobs that end it; returns further fields of the answer."""
        operation = transaction.payment.operation
        is_card = operation is _CARD
        delay = behaviour.card_auto_complete if is_card else behaviour.settle_delay
        override = transaction.override
        if override is not None and is_approval(override.id):
            delay = timedelta()  # the prompt's own time counts
        stays_pending = override is not None and override.status is Status.PENDING
        if stays_pending or (is_card and not delay):
            transaction = transaction._replace(by_hand=True)
        due = transaction.initiated_at + delay
        await self.settlement.begin(unit, transaction, due)
        if is_card:
            page_id = await self._open_page(unit, transaction)
            return {"redirect_url": f"{request.public_address()}{PAY_PAGES}/{page_id}"}
        return {"status": "success"} if operation is _PAYOUT else None

    async def _open_page(self, unit: Unit, transaction: TransactionRecord) -> str:
        """Save the hosted page of a card payment; returns its id."""
        page = CardPage(
            id=self.ids.token(),
            service_id=transaction.service_id,
            network_transaction_id=transaction.network_transaction_id,
            expires_at=transaction.expires_at,
        )
        await unit.add_card_page(page)
        return page.id

    async def _wait_for_first_attempt(self, request: PaymentRequest, reply: Reply) -> Reply:
        """Wait for the first attempt at the callback, as an override asks for (D16)."""
        network_id = request.network_transaction_id
        self.gate.release(network_id)
        await self.overrides.wait_for_first_attempt(request.payment.service_id, network_id)
        return reply


async def _newest_with_same_id(unit: Unit, payment: Payment) -> TransactionRecord | None:
    """The newest transaction with the `transaction_id`, locked until the unit ends; or None.

    The lock keeps a settlement by another server from being overwritten when the transaction is
    marked as replaced.
    """
    network_id = await unit.network_id_of(payment.service_id, payment.transaction_id)
    if network_id is None:
        return None
    return await unit.transaction_by_network_id(payment.service_id, network_id)


def _without_plus(payment: Payment) -> Payment:
    """The payment with a `+233…` as 233 form (D11)."""
    if not payment.is_mobile:
        return payment
    return payment._replace(party=msisdn.without_plus(payment.party))


def _warnings(
    payment: Payment, behaviour: Behaviour, reply: Reply, earlier: TransactionRecord | None
) -> tuple[str, ...]:
    """Warnings about values that sandbox accepts, and production or another setting refuses."""
    leaves_transaction = reply.code in LEAVE_A_TRANSACTION
    warnings = [] if earlier is None else [REPLACES_EARLIER if leaves_transaction else USED_BEFORE]
    in_233_form = payment.party.startswith(msisdn.COUNTRY_CODE) and payment.is_mobile
    if in_233_form and leaves_transaction and behaviour.accept_international:
        by_lenient = "accept_international" in behaviour.turned_on_by_lenient
        warnings.append(BY_LENIENT if by_lenient else IN_233_FORM)
    try:
        if payment.amount % PESEWA:
            warnings.append(MORE_DECIMALS)
    except InvalidOperation:  # above all money there are no decimals
        pass
    return tuple(warnings)


@dataclass(eq=False, repr=False)
class Payments:
    """Hands each payment to the processor of its client's mode.

    processors: the modes that this server serves; the web layer refuses other clients (D32).
    """

    store: Store
    ids: Ids
    gate: AnswerGate
    processors: Mapping[ServiceMode, PaymentProcessor]

    async def submit(
        self,
        payment: Payment,
        client: Client,
        received_at: datetime,
        public_address: Callable[[], str],
        details: PaymentDetails = NO_DETAILS,
    ) -> Reply:
        """Process a payment in one unit of work; returns when it is saved.

        The answer gate holds the callback of the payment. The caller releases `Reply.awaited_by`
        when the answer is written. If it raises, an error of the store or an internal one, nothing
        is held, and nothing was saved unless it was raised after the commit.

        received_at, public_address, details: as in `PaymentRequest`.
        """
        processor = self.processors[client.mode]
        network_id = self.ids.network_transaction_id()
        request = PaymentRequest(payment, client, network_id, received_at, public_address, details)
        self.gate.hold(network_id)
        try:
            decision = await self.store.run(lambda unit: processor.process(unit, request))
            reply = decision if isinstance(decision, Reply) else await decision()
        except BaseException:
            self.gate.release(network_id)
            raise
        # Its last field is `awaited_by`. `_replace` would take five times as long.
        return Reply._make((*reply[:-1], network_id))
