"""The payment processor of mode S: the sandbox rules decide, and time settles.

Source: service.1 to service.5, D14 to D16, D20, D33.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Final

from sandbox_sim.domain import msisdn
from sandbox_sim.domain.control.overrides import Override, magic_override
from sandbox_sim.domain.payments.approval import (
    APPROVAL_RULE,
    HANDSET_PAGES,
    approval_override,
    is_approval,
)
from sandbox_sim.domain.payments.card_page import PAY_PAGES, CardPage
from sandbox_sim.domain.payments.magic_outcomes import MAGIC_RULE
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.payments.payment_rules import Facts, Outcome, Sandbox, decide
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.response_codes import Code
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.control.override_selection import Overrides
from sandbox_sim.gateway.ledger.accounts import Accounts
from sandbox_sim.gateway.payments.settlement import Settlement
from sandbox_sim.gateway.ports import (
    Accepted,
    AnswerGate,
    Ids,
    PaymentRequest,
    Rejected,
    Unit,
)

# The outcomes that leave a transaction which can be queried (D15).
LEAVE_A_TRANSACTION: Final = frozenset({Code.RECEIVED, Code.SUCCESS, Code.DECLINED})
REPEATED: Final = (
    "the service has used this transaction_id before; the newer transaction replaces the older"
)
IN_233_FORM: Final = (
    "customer_number is in the 233 form, which payments take only because of the setting "
    "accept_international"
)
BY_LENIENT: Final = f"{IN_233_FORM}, which lenient turned on"
# Constants, because Python 3.11 takes long to find a member of an enum and to make a named tuple.
_CARD: Final = Operation.CARD
_PAYOUT: Final = Operation.PAYOUT
_NEW: Final = Facts()
_REPEATED: Final = Facts(repeated=True)
PESEWA: Final = Decimal("0.01")
MORE_DECIMALS: Final = "amount has more than two decimals, and the smallest coin is a pesewa, 0.01"


class SandboxProcessor:
    """Applies the sandbox rules, or what an override of the user asks for instead.

    settle_delay: from the 202 to the success. auto_complete: from the answer to a card payment to
    its success, if no browser opens its page; zero if it never succeeds without one. approval: how
    long a payer has to approve a payment on the handset; None if no payer is asked.
    """

    def __init__(
        self,
        ids: Ids,
        accounts: Accounts,
        gate: AnswerGate,
        overrides: Overrides,
        settlement: Settlement,
        *,
        sandbox: Sandbox,
        settle_delay: timedelta,
        auto_complete: timedelta,
        approval: timedelta | None = None,
    ) -> None:
        self._ids = ids
        self._accounts = accounts
        self._gate = gate
        self._overrides = overrides
        self._settlement = settlement
        self._sandbox = sandbox
        self._why_international = _why_international(sandbox)
        self._settle_delay = settle_delay
        self._auto_complete = auto_complete
        self._approval = approval

    async def process(self, unit: Unit, request: PaymentRequest) -> Accepted | Rejected:
        """Decide a payment, and save its transaction if it leaves one."""
        payment, at = request.payment, request.received_at
        earlier = await unit.transaction(payment.service_id, payment.transaction_id)
        outcome, override = await self.decide(unit, payment, at, earlier), None
        magic_status = None
        if outcome.rule == MAGIC_RULE:
            magic_status = self._sandbox.magic_outcomes.status_of(payment)
        if self._overrides.loaded:
            outcome, override = await self._overrides.decide(unit, payment, outcome)
        if magic_status is not None:
            override = magic_override(magic_status, override)
        if self._approval is not None and outcome.code == Code.RECEIVED:
            outcome, override = self._prompted(payment, self._approval, outcome, override)
        warnings = self._warnings(payment, outcome, earlier)
        if outcome.code not in LEAVE_A_TRANSACTION:
            return Rejected(outcome, warnings)
        network_id, client_key = request.network_transaction_id, request.client.client_key
        transaction = Transaction.start(
            payment, network_id, client_key, at, override, is_plain=request.is_plain
        )
        if outcome.code == Code.DECLINED:
            await self._settlement.decline(unit, transaction)
            return Rejected(outcome, warnings)
        fields = await self._accept(unit, request, transaction)
        accepted = Accepted(outcome, warnings, fields)
        if override is None or not override.callback.before_response:
            return accepted
        return accepted._replace(before_answer=partial(self._deliver_first, request, accepted))

    async def decide(
        self, unit: Unit, payment: Payment, at: datetime, earlier: Transaction | None = None
    ) -> Outcome:
        """What the rules answer to a payment at this moment.

        earlier: the live transaction of the service with the same `transaction_id`.
        """
        facts = _NEW if earlier is None else _REPEATED
        account = self._accounts.checked(payment.operation)
        if account is not None:
            available = await self._accounts.reported(unit, payment.service_id, account, at)
            facts = facts._replace(available=available)
        return decide(payment, self._sandbox, facts)

    @staticmethod
    def _prompted(
        payment: Payment, timeout: timedelta, outcome: Outcome, override: Override | None
    ) -> tuple[Outcome, Override | None]:
        """The outcome and the override of a payment after it was sent to its payer (D33)."""
        asking = approval_override(payment, timeout, override)
        if asking is None:
            return outcome, override
        why = (
            f"the payer is asked at {HANDSET_PAGES}/{payment.party} for "
            f"{timeout.total_seconds():g} s (setting approval)"
        )
        return outcome._replace(rule=APPROVAL_RULE, why=why), asking

    def _warnings(
        self, payment: Payment, outcome: Outcome, earlier: Transaction | None
    ) -> tuple[str, ...]:
        """Remarks on what sandbox takes, and production or another setting refuses."""
        found = [] if earlier is None else [REPEATED]
        taken = outcome.code in LEAVE_A_TRANSACTION
        if payment.party.startswith(msisdn.COUNTRY_CODE) and payment.is_mobile and taken:
            found += self._why_international
        try:
            if payment.amount % PESEWA:
                found.append(MORE_DECIMALS)
        except InvalidOperation:  # above all money there are no decimals
            pass
        return tuple(found)

    async def _accept(
        self, unit: Unit, request: PaymentRequest, transaction: Transaction
    ) -> dict[str, object] | None:
        """Save the transaction and the jobs that end it; returns further fields of the answer."""
        operation = transaction.payment.operation
        is_card = operation is _CARD
        delay = self._auto_complete if is_card else self._settle_delay
        override = transaction.override
        if override is not None and is_approval(override.id):
            delay = timedelta()  # the prompt's own time counts
        stays_pending = override is not None and override.status is Status.PENDING
        if stays_pending or (is_card and not delay):
            transaction = transaction._replace(by_hand=True)
        due = transaction.initiated_at + delay
        for job in await self._settlement.begin(unit, transaction, due):
            await unit.add_job(job)
        if is_card:
            page_id = await self._open_page(unit, transaction)
            return {"redirect_url": f"{request.public_address()}{PAY_PAGES}/{page_id}"}
        return {"status": "success"} if operation is _PAYOUT else None

    async def _open_page(self, unit: Unit, transaction: Transaction) -> str:
        """Save the hosted page of a card payment; returns its id."""
        page = CardPage(
            id=self._ids.token(),
            service_id=transaction.service_id,
            network_transaction_id=transaction.network_transaction_id,
            expires_at=transaction.expires_at,
        )
        await unit.add_card_page(page)
        return page.id

    async def _deliver_first(self, request: PaymentRequest, accepted: Accepted) -> Accepted:
        """Wait for the first attempt at the callback, as an override asks for (D16)."""
        network_id = request.network_transaction_id
        self._gate.release(network_id)
        await self._overrides.first_attempt(request.payment.service_id, network_id)
        return accepted


def _why_international(sandbox: Sandbox) -> Sequence[str]:
    """The warning about a number in the 233 form that a payment took; none where none does."""
    if not sandbox.allowlist.accept_international:
        return ()
    return (BY_LENIENT if "accept_international" in sandbox.lenient else IN_233_FORM,)
