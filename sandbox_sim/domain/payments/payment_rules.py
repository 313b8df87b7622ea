"""What sandbox answers to a payment: a row of rules for each operation, the first to speak decides.

Source: sandbox.1 to sandbox.7, "limits", D11 to D14, D19, D20; the order is that of D9. A rule
is a function of the payment, the sandbox's settings and the facts; it returns an `Outcome` or
None.
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
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.response_codes import Code
from sandbox_sim.domain.vocabulary import Operation, PaymentOption

AMOUNT_CAP: Final = Decimal(10000)


@dataclass(frozen=True)
class Sandbox:
    """The settings that the rules ask."""

    allowlist: Allowlist = field(default_factory=Allowlist)
    test_cards: Mapping[str, str] = field(default_factory=lambda: TEST_CARDS)
    reject_duplicates: bool = False

    @cached_property
    def rules(self) -> "Mapping[Operation, tuple[Rule, ...]]":
        """`RULES` without those that these settings turn off."""
        off = {rule for rule, is_on in ONLY_IF.items() if not is_on(self)}
        return {
            operation: tuple(rule for rule in row if rule not in off)
            for operation, row in RULES.items()
        }


class Facts(NamedTuple):
    """What is known of the service when the payment comes in.

    repeated: it has a live transaction with the same `transaction_id`.
    available: what the account holds that the payment is taken from; None where none is checked.
    """

    repeated: bool = False
    available: Decimal | None = None


class Outcome(NamedTuple):
    """The code that answers, the rule that chose it, and why, in words."""

    code: str
    rule: str
    why: str
    message: str | None = None


Rule = Callable[[Payment, Sandbox, Facts], Outcome | None]


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
    if payment.asks_for_card:
        return None
    return card_outcome(payment.party, payment.nw, sandbox)


def card_outcome(number: str, nw: str | None, sandbox: Sandbox) -> Outcome | None:
    """The rejection of a card that sandbox does not take; `nw` None stands for either brand."""
    brand = sandbox.test_cards.get(number)
    if brand is None:
        return Outcome(Code.NOT_ALLOWED, "sandbox.6", "customer_number is none of the test cards")
    if nw not in {None, brand}:
        return Outcome(Code.NOT_ALLOWED, "D20", f"the test card is a {brand} card and nw says {nw}")
    return None


def _bill_account(payment: Payment, _sandbox: Sandbox, _facts: Facts) -> Outcome | None:
    if billers.is_account_of(payment.nw, payment.party):
        return None
    shape = billers.ACCOUNT_PREFIX[payment.nw] + "000000"
    return Outcome(
        Code.NOT_ALLOWED,
        "sandbox.7",
        f"account_number is no account of {payment.nw}; those are {shape} and three more digits",
    )


def _allowed_number(payment: Payment, sandbox: Sandbox, _facts: Facts) -> Outcome | None:
    if sandbox.allowlist.admits(payment.party):
        return None
    if sandbox.allowlist.admits(payment.party, either_form=True):
        why = "payments take the local form, 0 and nine digits, and this is the 233 form"
        return Outcome(Code.NOT_ALLOWED, "D11", why)
    prefixes = ", ".join(sandbox.allowlist.prefixes)
    why = f"customer_number is not allowlisted; sandbox takes ten digits that begin {prefixes}"
    if sandbox.allowlist.numbers:
        why += ", of those only the setting allowed_numbers"
    return Outcome(Code.NOT_ALLOWED, "sandbox.1", why)


def _matching_network(payment: Payment, _sandbox: Sandbox, _facts: Facts) -> Outcome | None:
    owner = msisdn.network_mismatch(payment.party, payment.nw)
    if owner is None:
        return None
    return Outcome(
        Code.NOT_ALLOWED, "D11", f"the number belongs to {owner} and nw says {payment.nw}"
    )


def _amount_cap(payment: Payment, _sandbox: Sandbox, _facts: Facts) -> Outcome | None:
    if payment.amount <= AMOUNT_CAP:
        return None
    rule = "D12" if payment.operation is Operation.CARD else "sandbox.3"
    return Outcome(Code.AMOUNT_ABOVE_CAP, rule, f"amount is above {AMOUNT_CAP}")


def _balance(payment: Payment, _sandbox: Sandbox, facts: Facts) -> Outcome | None:
    if facts.available is None or payment.amount <= facts.available:
        return None
    return Outcome(
        Code.INSUFFICIENT_BALANCE, "D13", f"amount is above the balance of {facts.available}"
    )


def _repeated(_payment: Payment, _sandbox: Sandbox, facts: Facts) -> Outcome | None:
    if not facts.repeated:
        return None
    return Outcome(
        Code.DUPLICATE, "D14", "the service has a transaction with this transaction_id already"
    )


def _last_digit(payment: Payment, _sandbox: Sandbox, _facts: Facts) -> Outcome | None:
    if not msisdn.is_declined(payment.party):
        return None
    rule = "sandbox.7" if payment.operation is Operation.BILL else "sandbox.3"
    return Outcome(Code.DECLINED, rule, "last digit 9 is a simulated decline")


# The order of D9. A rule that cannot speak of an operation is left out of its row.
RULES: Final[Mapping[Operation, tuple[Rule, ...]]] = {
    Operation.COLLECT: (_allowed_number, _matching_network, _amount_cap, _repeated, _last_digit),
    Operation.CARD: (_test_card, _amount_cap, _repeated),
    Operation.DEPOSIT: (_allowed_number, _matching_network, _repeated, _last_digit),
    Operation.PAYOUT: (
        _payout_channel,
        _allowed_number,
        _matching_network,
        _balance,
        _repeated,
        _last_digit,
    ),
    Operation.BILL: (_bill_account, _amount_cap, _balance, _repeated, _last_digit),
    Operation.AIRTIME: (
        _allowed_number,
        _matching_network,
        _amount_cap,
        _balance,
        _repeated,
        _last_digit,
    ),
}

# The rules that a setting turns on.
ONLY_IF: Final[Mapping[Rule, Callable[[Sandbox], bool]]] = {
    _matching_network: lambda sandbox: sandbox.allowlist.match_network,
    _repeated: lambda sandbox: sandbox.reject_duplicates,
}

# What is answered to a payment that no rule objects to.
ACCEPTANCE: Final[Mapping[Operation, Outcome]] = {
    Operation.COLLECT: Outcome(Code.RECEIVED, "sandbox.3", "allowlisted number, last digit 0 to 8"),
    Operation.DEPOSIT: Outcome(Code.RECEIVED, "sandbox.3", "allowlisted number, last digit 0 to 8"),
    Operation.AIRTIME: Outcome(Code.RECEIVED, "sandbox.3", "allowlisted number, last digit 0 to 8"),
    Operation.PAYOUT: Outcome(Code.RECEIVED, "sandbox.5", "allowlisted number, last digit 0 to 8"),
    Operation.BILL: Outcome(Code.RECEIVED, "sandbox.7", "account of the biller, last digit 0 to 8"),
    Operation.CARD: Outcome(Code.SUCCESS, "sandbox.6", "test card", message="Successful"),
}


def decide(payment: Payment, sandbox: Sandbox, facts: Facts) -> Outcome:
    """What the first rule to speak says, or the acceptance of the operation."""
    for rule in sandbox.rules[payment.operation]:
        outcome = rule(payment, sandbox, facts)
        if outcome is not None:
            return outcome
    return ACCEPTANCE[payment.operation]
