"""The sandbox rules for payments: an ordered list of checks for each operation.

Source: sandbox.1 to sandbox.7, "limits", D11 to D14, D19, D20; the order is that of D9. A check is
a function of the payment, the settings and the facts. It returns an `Outcome`, which names the rule
that it applies, or None to leave the decision to the next check.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Final, NamedTuple

from sandbox_sim.domain import msisdn
from sandbox_sim.domain.msisdn import Allowlist
from sandbox_sim.domain.payments import billers
from sandbox_sim.domain.payments.cards import TEST_CARDS
from sandbox_sim.domain.payments.magic_outcomes import MAGIC_RULE, MAGIC_STATUSES, MagicOutcomes
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.refused_values import quoted, quoted_card
from sandbox_sim.domain.response_codes import Code
from sandbox_sim.domain.vocabulary import Operation, PaymentOption

AMOUNT_CAP: Final = Decimal(10000)
_ABOVE_ALL_MONEY: Final = Decimal(10**15)


@dataclass(frozen=True)
class Sandbox:
    """The settings that the checks read.

    lenient: the names of those that only the setting `lenient` turned on (D34).
    """

    allowlist: Allowlist = field(default_factory=Allowlist)
    test_cards: Mapping[str, str] = field(default_factory=lambda: TEST_CARDS)
    reject_duplicates: bool = False
    lenient: frozenset[str] = frozenset()
    magic_outcomes: MagicOutcomes = field(default_factory=MagicOutcomes)

    @cached_property
    def checks(self) -> "Mapping[Operation, tuple[PaymentCheck, ...]]":
        """`CHECKS` without those that these settings turn off."""
        off = {check for check, is_on in OPTIONAL_CHECKS.items() if not is_on(self)}
        return {
            operation: tuple(check for check in checks if check not in off)
            for operation, checks in CHECKS.items()
        }


class Facts(NamedTuple):
    """The state of the service when the payment arrives.

    repeated: it has a live transaction with the same `transaction_id`.
    available: the balance of the account that the payment is taken from; None where none is
    checked.
    """

    repeated: bool = False
    available: Decimal | None = None


class Outcome(NamedTuple):
    """The response code of a decision, the numbered rule that chose it, and why, in words.

    message: replaces the message of the catalogue where it is set.
    """

    code: str
    rule: str
    why: str
    message: str | None = None


PaymentCheck = Callable[[Payment, Sandbox, Facts], Outcome | None]


def _payout_channel(payment: Payment, _sandbox: Sandbox, _facts: Facts) -> Outcome | None:
    if payment.is_mobile:
        return None
    channel = "bank" if payment.payment_mode == PaymentOption.BANK else "card"
    return Outcome(
        Code.NOT_ALLOWED,
        "D13",
        f"sandbox pays out to mobile money only, not to a {channel}",
        message="Bank and card payouts are not available in sandbox",
    )


def _test_card(payment: Payment, sandbox: Sandbox, _facts: Facts) -> Outcome | None:
    if payment.uses_card_entry:
        return None
    return card_outcome(payment.party, payment.nw, sandbox)


def card_outcome(number: str, nw: str | None, sandbox: Sandbox) -> Outcome | None:
    """The rejection of a card that sandbox refuses, else None; `nw` None means any brand."""
    brand = sandbox.test_cards.get(number)
    if brand is None:
        why = f"customer_number {quoted_card(number)} is none of the setting test_cards"
        return Outcome(Code.NOT_ALLOWED, "sandbox.6", why)
    if nw not in {None, brand}:
        return Outcome(Code.NOT_ALLOWED, "D20", f"the test card is a {brand} card and nw is '{nw}'")
    return None


def _bill_account(payment: Payment, _sandbox: Sandbox, _facts: Facts) -> Outcome | None:
    if billers.is_account_of(payment.nw, payment.party):
        return None
    shape = billers.ACCOUNT_PREFIX[payment.nw] + "000000"
    return Outcome(
        Code.NOT_ALLOWED,
        "sandbox.7",
        f"account_number {quoted(payment.party)} is no account of {payment.nw}; those are {shape} "
        "and three more digits",
    )


def _allowed_number(payment: Payment, sandbox: Sandbox, _facts: Facts) -> Outcome | None:
    if sandbox.allowlist.allows(payment.party):
        return None
    local = msisdn.to_local(payment.party)
    if local is not None and sandbox.allowlist.allows(local):
        value = quoted(payment.party)
        why = f"customer_number {value} is in the 233 form, and payments take '{local}'"
        setting = "the setting accept_international takes both"
        return Outcome(Code.NOT_ALLOWED, "D11", f"{why}; {setting}")
    why = f"customer_number {sandbox.allowlist.refusal(payment.party)}"
    return Outcome(Code.NOT_ALLOWED, "sandbox.1", why)


def _matching_network(payment: Payment, _sandbox: Sandbox, _facts: Facts) -> Outcome | None:
    owner = msisdn.network_mismatch(payment.party, payment.nw)
    if owner is None:
        return None
    why = f"customer_number {quoted(payment.party)} belongs to {owner} and nw is '{payment.nw}'"
    return Outcome(Code.NOT_ALLOWED, "D11", f"{why} (setting match_network)")


def _amount_cap(payment: Payment, _sandbox: Sandbox, _facts: Facts) -> Outcome | None:
    if payment.amount <= AMOUNT_CAP:
        return None
    rule = "D12" if payment.operation is Operation.CARD else "sandbox.3"
    return Outcome(Code.AMOUNT_ABOVE_CAP, rule, _above_cap(payment.amount))


def _above_cap(amount: Decimal) -> str:
    return f"amount {_plain(amount)} is above {AMOUNT_CAP}, the most of sandbox"


def _plain(amount: Decimal) -> str:
    """An amount for a sentence, without zeros at its end; one above all money as 1E+30."""
    return f"{amount.normalize():f}" if amount < _ABOVE_ALL_MONEY else f"{amount.normalize()}"


def _balance(payment: Payment, _sandbox: Sandbox, facts: Facts) -> Outcome | None:
    if facts.available is None or payment.amount <= facts.available:
        return None
    why = f"amount {_plain(payment.amount)} is above the balance of {_plain(facts.available)}"
    return Outcome(Code.INSUFFICIENT_BALANCE, "D13", why)


def _repeated(payment: Payment, _sandbox: Sandbox, facts: Facts) -> Outcome | None:
    if not facts.repeated:
        return None
    why = f"the service has a transaction {quoted(payment.transaction_id)} already"
    return Outcome(Code.DUPLICATE, "D14", f"{why}; the setting duplicates can take it")


def _magic_outcome(payment: Payment, sandbox: Sandbox, _facts: Facts) -> Outcome | None:
    found = sandbox.magic_outcomes.outcome_of(payment)
    if found is None:
        return None
    outcome, chosen_by = found
    why = f"the setting magic_outcomes gives {outcome} to this {chosen_by}"
    if outcome in MAGIC_STATUSES:
        return ACCEPTANCE[payment.operation]._replace(rule=MAGIC_RULE, why=why)
    return Outcome(outcome, MAGIC_RULE, why)


def _last_digit(payment: Payment, _sandbox: Sandbox, _facts: Facts) -> Outcome | None:
    if not msisdn.is_declined(payment.party):
        return None
    rule, field = "sandbox.3", "customer_number"
    if payment.operation is Operation.BILL:
        rule, field = "sandbox.7", "account_number"
    why = f"last digit 9 is a simulated decline ({field} {quoted(payment.party)})"
    return Outcome(Code.DECLINED, rule, why)


# The order of D9. A check that cannot apply to an operation is not in its list.
_LAST: Final = (_repeated, _magic_outcome, _last_digit)
CHECKS: Final[Mapping[Operation, tuple[PaymentCheck, ...]]] = {
    Operation.COLLECT: (_allowed_number, _matching_network, _amount_cap, *_LAST),
    Operation.CARD: (_test_card, _amount_cap, _repeated, _magic_outcome),
    Operation.DEPOSIT: (_allowed_number, _matching_network, *_LAST),
    Operation.PAYOUT: (_payout_channel, _allowed_number, _matching_network, _balance, *_LAST),
    Operation.BILL: (_bill_account, _amount_cap, _balance, *_LAST),
    Operation.AIRTIME: (_allowed_number, _matching_network, _amount_cap, _balance, *_LAST),
}

# The checks that a setting turns on.
OPTIONAL_CHECKS: Final[Mapping[PaymentCheck, Callable[[Sandbox], bool]]] = {
    _matching_network: lambda sandbox: sandbox.allowlist.match_network,
    _repeated: lambda sandbox: sandbox.reject_duplicates,
    _magic_outcome: lambda sandbox: bool(sandbox.magic_outcomes),
}

# The outcome of a payment that passes every check.
ACCEPTANCE: Final[Mapping[Operation, Outcome]] = {
    Operation.COLLECT: Outcome(Code.RECEIVED, "sandbox.3", "allowlisted number, last digit 0 to 8"),
    Operation.DEPOSIT: Outcome(Code.RECEIVED, "sandbox.3", "allowlisted number, last digit 0 to 8"),
    Operation.AIRTIME: Outcome(Code.RECEIVED, "sandbox.3", "allowlisted number, last digit 0 to 8"),
    Operation.PAYOUT: Outcome(Code.RECEIVED, "sandbox.5", "allowlisted number, last digit 0 to 8"),
    Operation.BILL: Outcome(Code.RECEIVED, "sandbox.7", "account of the biller, last digit 0 to 8"),
    Operation.CARD: Outcome(Code.SUCCESS, "sandbox.6", "test card", message="Successful"),
}


def decide(payment: Payment, sandbox: Sandbox, facts: Facts) -> Outcome:
    """The outcome of the first check that returns one, else the acceptance of the operation."""
    for check in sandbox.checks[payment.operation]:
        outcome = check(payment, sandbox, facts)
        if outcome is not None:
            return outcome
    return ACCEPTANCE[payment.operation]
