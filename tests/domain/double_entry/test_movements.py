"""The ledger entries of payments."""

from decimal import Decimal

import pytest

from sandbox_sim.domain.double_entry import accounts, movements
from sandbox_sim.domain.double_entry.accounts import Account
from sandbox_sim.domain.double_entry.entries import BadTransfer, Transfer, post
from sandbox_sim.domain.ledger import Account as Wallet
from sandbox_sim.domain.networks.attempts import MONEY_OUT
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.vocabulary import Operation
from tests.domain.networks.samples import NOON, attempt

pytestmark = pytest.mark.decision("D39")

AMOUNT = Decimal("10.50")
MONEY_IN = (Operation.COLLECT, Operation.CARD, Operation.DEPOSIT)
GHS_CLEARING = accounts.clearing("mtn", "GHS")


@pytest.mark.parametrize(
    ("operation", "wallet"),
    [
        (Operation.PAYOUT, Wallet.PAYOUT),
        (Operation.BILL, Wallet.PAYOUT),
        (Operation.AIRTIME, Wallet.AIRTIME),
    ],
)
def test_what_goes_out_is_held_first(operation: Operation, wallet: Wallet) -> None:
    hold = movements.hold_for(attempt(operation))

    assert hold is not None
    assert (hold.wallet, hold.amount, hold.service_id) == (wallet, AMOUNT, 55)
    assert movements.received(attempt(operation), NOON) is None


@pytest.mark.parametrize(
    ("operation", "wallet"),
    [
        (Operation.COLLECT, Wallet.COLLECTION),
        (Operation.CARD, Wallet.COLLECTION),
        (Operation.DEPOSIT, Wallet.PAYOUT),
    ],
)
def test_what_comes_in_needs_no_hold_and_arrives_with_success(
    operation: Operation, wallet: Wallet
) -> None:
    entry = movements.received(attempt(operation), NOON)

    assert movements.hold_for(attempt(operation)) is None
    assert entry is not None
    target = accounts.available(55, wallet, "GHS")
    assert entry.transfers == (Transfer(GHS_CLEARING, target, AMOUNT),)


def settled(operation: Operation, first: Outcome, then: Outcome) -> dict[Account, Decimal]:
    """The balances after a final outcome and a later report that contradicts it."""
    subject = attempt(operation)
    balances: dict[Account, Decimal] = {}
    hold = movements.hold_for(subject)
    entries = []
    if hold is not None:
        balances |= {hold.available: AMOUNT, accounts.suspense(hold.held.asset): Decimal(0)}
        entries.append(hold.placed())
        other_end = movements.outside(hold.held.asset, "mtn")
        succeeded = first is Outcome.SUCCEEDED
        _, ended = hold.committed(other_end, NOON) if succeeded else hold.voided(NOON)
        entries.append(ended)
    elif first is Outcome.SUCCEEDED:
        received = movements.received(subject, NOON)
        assert received is not None
        entries.append(received)
    suspended = movements.suspended(subject._replace(contradicted_by=then), NOON)
    assert suspended is not None
    entries.append(suspended)
    for entry in entries:
        balances |= post(balances, entry)
    return balances


@pytest.mark.parametrize("operation", [*MONEY_IN, *sorted(MONEY_OUT, key=lambda each: each.value)])
def test_after_a_contradiction_the_network_is_right_and_suspense_has_the_difference(
    operation: Operation,
) -> None:
    asset = "AIRTIME" if operation is Operation.AIRTIME else "GHS"
    outside, suspense = movements.outside(asset, "mtn"), accounts.suspense(asset)
    comes_in = operation in MONEY_IN

    reversed_ = settled(operation, Outcome.SUCCEEDED, Outcome.FAILED)
    assert reversed_[outside] == 0
    assert reversed_[suspense] == (-AMOUNT if comes_in else AMOUNT)

    late = settled(operation, Outcome.FAILED, Outcome.SUCCEEDED)
    assert late[outside] == (-AMOUNT if comes_in else AMOUNT)
    assert late[suspense] == (AMOUNT if comes_in else -AMOUNT)


def test_a_network_that_says_pending_has_moved_no_money() -> None:
    subject = attempt(outcome=Outcome.NOT_SENT, contradicted_by=Outcome.PENDING)

    assert movements.suspended(subject, NOON) is None


def test_units_come_from_where_units_are_issued() -> None:
    entry = movements.topup(55, Wallet.SMS, "GHS", Decimal(100), "", NOON)

    (transfer,) = entry.transfers
    assert (str(transfer.source), str(transfer.target)) == (
        "issued/SMS",
        "service/55/sms/available/SMS",
    )


@pytest.mark.parametrize("wallet", [Wallet.PAYOUT, Wallet.COLLECTION])
def test_nobody_tops_up_money(wallet: Wallet) -> None:
    with pytest.raises(BadTransfer, match="comes by a deposit"):
        movements.topup(55, wallet, "GHS", Decimal(100), "", NOON)
