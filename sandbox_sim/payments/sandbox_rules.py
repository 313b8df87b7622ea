"""The sandbox rules for payments: an ordered list of checks for each operation.

Source: sandbox.1 to sandbox.7, "limits", D11 to D14, D19, D20; the order is that of D9. A check is
a function of the payment, the settings and the facts. It returns a `Reply`, which names the rule
that it applies, or None to leave the decision to the next check.
"""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Final, NamedTuple

from sandbox_sim.operations import ACCEPTANCE, PAYMENTS, Operation, Party, PaymentRow
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.magic_outcomes import MAGIC_RULE, MAGIC_STATUSES
from sandbox_sim.records.transactions import Payment
from sandbox_sim.values import msisdn, vocabulary
from sandbox_sim.values.redaction import quoted, quoted_card
from sandbox_sim.values.response_codes import Code, Reply
from sandbox_sim.values.vocabulary import PaymentOption

AMOUNT_CAP: Final = Decimal(10000)

_LARGEST_PLAIN_AMOUNT: Final = Decimal(10**15)


class Facts(NamedTuple):
    """The state of the service when the payment arrives.

    repeated: it has a live transaction with the same `transaction_id`.
    available: the balance of the account that the payment is taken from; None if it is not
    checked.
    """

    repeated: bool = False
    available: Decimal | None = None


PaymentCheck = Callable[[Payment, Behaviour, Facts], Reply | None]


def _payout_channel(payment: Payment, _behaviour: Behaviour, _facts: Facts) -> Reply | None:
    if payment.is_mobile:
        return None
    channel = "bank" if payment.payment_mode == PaymentOption.BANK else "card"
    why = f"sandbox pays out to mobile money only, not to a {channel}"
    message = "Bank and card payouts are not available in sandbox"
    return Reply(Code.NOT_ALLOWED, "D13", why, message)


def _test_card(payment: Payment, behaviour: Behaviour, _facts: Facts) -> Reply | None:
    if payment.uses_card_entry:
        return None
    return card_refusal(payment.party, payment.nw, behaviour)


def card_refusal(number: str, nw: str | None, behaviour: Behaviour) -> Reply | None:
    """The rejection of a card that is not a test card of brand `nw`, or None. nw: None for any."""
    brand = behaviour.test_cards.get(number)
    if brand is None:
        why = f"customer_number {quoted_card(number)} is not listed in the setting test_cards"
        return Reply(Code.NOT_ALLOWED, "sandbox.6", why)
    if nw not in {None, brand}:
        return Reply(Code.NOT_ALLOWED, "D20", f"the test card is a {brand} card and nw is '{nw}'")
    return None


def _bill_account(payment: Payment, _behaviour: Behaviour, _facts: Facts) -> Reply | None:
    if vocabulary.is_account_of(payment.nw, payment.party):
        return None
    of_nw = f"{vocabulary.ACCOUNT_PREFIX[payment.nw]}000000 and three more digits"
    why = f"account_number {quoted(payment.party)} is not an account of {payment.nw}"
    return Reply(Code.NOT_ALLOWED, "sandbox.7", f"{why}; those are {of_nw}")


def _allowed_number(payment: Payment, behaviour: Behaviour, _facts: Facts) -> Reply | None:
    if behaviour.allowlist.allows(payment.party):
        return None
    local = msisdn.to_local(msisdn.without_plus(payment.party))
    if local is not None and behaviour.allowlist.allows(local):
        value = quoted(payment.party)
        why = f"customer_number {value} is in the 233 form, and payments accept '{local}'"
        setting = "the setting accept_international accepts both"
        return Reply(Code.NOT_ALLOWED, "D11", f"{why}; {setting}")
    why = f"customer_number {behaviour.allowlist.refusal(payment.party)}"
    return Reply(Code.NOT_ALLOWED, "sandbox.1", why)


def _matching_network(payment: Payment, _behaviour: Behaviour, _facts: Facts) -> Reply | None:
    owner = msisdn.network_mismatch(payment.party, payment.nw)
    if owner is None:
        return None
    why = f"customer_number {quoted(payment.party)} belongs to {owner} and nw is '{payment.nw}'"
    return Reply(Code.NOT_ALLOWED, "D11", f"{why} (setting match_network)")


def _amount_cap(payment: Payment, _behaviour: Behaviour, _facts: Facts) -> Reply | None:
    if payment.amount <= AMOUNT_CAP:
        return None
    rule = "D12" if payment.operation is Operation.CARD else "sandbox.3"
    why = f"amount {_format_amount(payment.amount)} is above {AMOUNT_CAP}, the sandbox maximum"
    return Reply(Code.AMOUNT_ABOVE_CAP, rule, why)


def _format_amount(amount: Decimal) -> str:
    """An amount for a sentence, without zeros at its end; one above all money as 1E+30."""
    return f"{amount.normalize():f}" if amount < _LARGEST_PLAIN_AMOUNT else f"{amount.normalize()}"


def _balance(payment: Payment, _behaviour: Behaviour, facts: Facts) -> Reply | None:
    if facts.available is None or payment.amount <= facts.available:
        return None
    amount, available = _format_amount(payment.amount), _format_amount(facts.available)
    why = f"amount {amount} is above the balance of {available}"
    return Reply(Code.INSUFFICIENT_BALANCE, "D13", why)


def _repeated(payment: Payment, _behaviour: Behaviour, facts: Facts) -> Reply | None:
    if not facts.repeated:
        return None
    why = f"the service already has a transaction {quoted(payment.transaction_id)}"
    return Reply(Code.DUPLICATE, "D14", f"{why}; the setting duplicates can accept it")


def _magic_outcome(payment: Payment, behaviour: Behaviour, _facts: Facts) -> Reply | None:
    result = behaviour.magic.outcome_of(payment)
    if result is None:
        return None
    outcome, chosen_by = result
    why = f"the setting magic_outcomes gives {outcome} to this {chosen_by}"
    if outcome in MAGIC_STATUSES:
        return ACCEPTANCE[payment.operation]._replace(rule=MAGIC_RULE, why=why)
    return Reply(outcome, MAGIC_RULE, why)


def _last_digit(payment: Payment, _behaviour: Behaviour, _facts: Facts) -> Reply | None:
    if not msisdn.is_declined(payment.party):
        return None
    row = PAYMENTS[payment.operation]
    rule = "sandbox.7" if row.party is Party.BILL_ACCOUNT else "sandbox.3"
    why = f"last digit 9 is a simulated decline ({row.party_field} {quoted(payment.party)})"
    return Reply(Code.DECLINED, rule, why)


# The checks of the number, account or card.
_PARTY_CHECKS: Final[Mapping[Party, tuple[PaymentCheck, ...]]] = {
    Party.PHONE: (_allowed_number, _matching_network),
    Party.PAYEE: (_payout_channel, _allowed_number, _matching_network),
    Party.CARD: (_test_card,),
    Party.BILL_ACCOUNT: (_bill_account,),
}


def _checks(operation: Operation, row: PaymentRow) -> Iterator[PaymentCheck]:
    """The checks of an operation, in the order of D9, without those that cannot apply to it."""
    yield from _PARTY_CHECKS[row.party]
    if Code.AMOUNT_ABOVE_CAP in operation.row.rejections:
        yield _amount_cap
    if operation.row.spends:
        yield _balance
    yield from (_repeated, _magic_outcome)
    if Code.DECLINED in operation.row.rejections:
        yield _last_digit


# The checks that a setting turns on, with its field in `Behaviour`.
_ENABLING_SETTING: Final[Mapping[PaymentCheck, str]] = {
    _matching_network: "match_network",
    _repeated: "rejects_duplicates",
    _magic_outcome: "magic_outcomes",
}
CHECKS: Final[Mapping[Operation, tuple[tuple[PaymentCheck, str | None], ...]]] = {
    operation: tuple((check, _ENABLING_SETTING.get(check)) for check in _checks(operation, row))
    for operation, row in PAYMENTS.items()
}


def decide(payment: Payment, behaviour: Behaviour, facts: Facts) -> Reply:
    """The reply of the first check that returns one, else the acceptance of the operation."""
    for check, setting in CHECKS[payment.operation]:
        if setting is not None and not getattr(behaviour, setting):
            continue
        reply = check(payment, behaviour, facts)
        if reply is not None:
            return reply
    return ACCEPTANCE[payment.operation]
