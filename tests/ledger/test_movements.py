"""The transfers that payments and messages make, in both modes."""

from decimal import Decimal
from itertools import chain

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.ledger import movements
from sandbox_sim.operations import Operation
from sandbox_sim.records.attempts import MONEY_OUT
from sandbox_sim.records.ledger import (
    MOVEMENTS,
    Account,
    AccountKind,
    BadTransfer,
    LedgerLine,
    Reason,
    Transfer,
    TransferKind,
    our_account,
    transfer,
)
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status, TransactionRecord
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet
from tests.production.samples import attempt
from tests.records.samples import NOON, PAYMENTS, SETTLED, transaction
from tests.sample_records import account_of, signed

LIVE = ServiceMode.PRODUCTION

SPENDING = {
    Operation.PAYOUT: Wallet.PAYOUT,
    Operation.BILL: Wallet.PAYOUT,
    Operation.AIRTIME: Wallet.AIRTIME,
}

RECEIVING = {
    Operation.COLLECT: Wallet.COLLECTION,
    Operation.CARD: Wallet.COLLECTION,
    Operation.DEPOSIT: Wallet.PAYOUT,
}

UNDONE = (Status.FAILED, Status.CANCELLED)

ENDS = (Status.SUCCESSFUL, *UNDONE)

AMOUNTS = st.decimals("0.01", 1_000_000, places=2)


def life(subject: TransactionRecord, end: Status) -> list[Transfer]:
    """What a transaction of mode S moves, from the 202 to its end."""
    steps = (subject, subject.moved(end, SETTLED))
    return [moved for step in steps if (moved := movements.of_transaction(step)) is not None]


@pytest.mark.spec("sandbox.9", "sandbox.10", "limits")
@pytest.mark.decision("D21", "D22")
@pytest.mark.parametrize(
    ("service_id", "account", "amount"),
    [
        (55, Wallet.SMS, 500),
        (59, Wallet.SMS, 0),
        (55, Wallet.PAYOUT, 10000),
        (59, Wallet.PAYOUT, 5),
        (55, Wallet.COLLECTION, 100000),
        (59, Wallet.COLLECTION, 10),
        (55, Wallet.AIRTIME, 1000),
        (59, Wallet.AIRTIME, 1),
    ],
)
def test_accounts_open_with_the_figures(service_id: int, account: Wallet, amount: int) -> None:
    made = movements.opening(service_id, account, 500, NOON)

    assert (made.account, made.credit) == (account_of(service_id, account),) * 2
    assert (made.amount, made.reason, made.subject) == (Decimal(amount), Reason.OPENING, "")
    assert made.at == NOON


@pytest.mark.decision("D22")
@pytest.mark.parametrize(("service_id", "units"), [(55, 20), (59, 0)])
def test_the_opening_units_are_a_setting_but_for_a_service_that_ends_in_9(
    service_id: int, units: int
) -> None:
    assert movements.opening(service_id, Wallet.SMS, 20, NOON).amount == units


@pytest.mark.decision("D22")
def test_the_opening_units_touch_no_other_account() -> None:
    assert movements.opening(55, Wallet.PAYOUT, 20, NOON).amount == 10000


@pytest.mark.decision("D21")
@pytest.mark.parametrize("operation", PAYMENTS)
def test_where_the_money_of_an_operation_comes_from(operation: Operation) -> None:
    assert operation.row.spends == SPENDING.get(operation)


@pytest.mark.decision("D21")
@pytest.mark.parametrize("operation", SPENDING)
@given(amount=AMOUNTS)
def test_money_that_leaves_does_so_at_acceptance_and_once(
    operation: Operation, amount: Decimal
) -> None:
    (spent,) = life(transaction(operation, amount=amount), Status.SUCCESSFUL)

    wallet = account_of(55, SPENDING[operation])
    assert (spent.debit, spent.account, spent.amount) == (wallet, wallet, amount)
    assert (spent.reason, spent.subject, spent.at) == ("spent", "12345678901", NOON)


@pytest.mark.decision("D21")
@pytest.mark.parametrize("operation", SPENDING)
@pytest.mark.parametrize("end", UNDONE)
@given(amount=AMOUNTS)
def test_money_that_was_spent_for_nothing_comes_back_whole(
    operation: Operation, end: Status, amount: Decimal
) -> None:
    spent, returned = life(transaction(operation, amount=amount), end)

    assert signed(spent) + signed(returned) == 0
    assert (spent.debit, spent.credit) == (returned.credit, returned.debit)
    assert spent.account == account_of(55, SPENDING[operation])
    assert (returned.reason, returned.subject) == ("returned", spent.subject)
    assert (spent.at, returned.at) == (NOON, SETTLED)


@pytest.mark.decision("D21")
@pytest.mark.parametrize("operation", RECEIVING)
@given(amount=AMOUNTS)
def test_money_that_comes_in_arrives_with_success_and_once(
    operation: Operation, amount: Decimal
) -> None:
    (received,) = life(transaction(operation, amount=amount), Status.SUCCESSFUL)
    reason = "deposited" if operation is Operation.DEPOSIT else "collected"

    wallet = account_of(55, RECEIVING[operation])
    assert (received.credit, received.account, received.amount) == (wallet, wallet, amount)
    assert (received.reason, received.subject, received.at) == (reason, "12345678901", SETTLED)


@pytest.mark.decision("D21")
@pytest.mark.parametrize("operation", RECEIVING)
@pytest.mark.parametrize("end", UNDONE)
def test_money_that_never_came_moves_nothing(operation: Operation, end: Status) -> None:
    assert life(transaction(operation), end) == []


@pytest.mark.decision("D21")
@given(st.lists(st.tuples(st.sampled_from(PAYMENTS), st.sampled_from(ENDS), AMOUNTS)))
def test_accounts_hold_what_came_in_less_what_was_spent(
    payments: list[tuple[Operation, Status, Decimal]],
) -> None:
    postings = [
        posting
        for operation, end, amount in payments
        for posting in life(transaction(operation, amount=amount), end)
    ]

    for account in Wallet:
        held = sum(signed(each) for each in postings if each.account == account_of(55, account))
        assert held == sum(
            amount if RECEIVING.get(operation) is account else -amount
            for operation, end, amount in payments
            if end is Status.SUCCESSFUL
            and account in {RECEIVING.get(operation), SPENDING.get(operation)}
        )


AMOUNT = Decimal("10.50")

GHS_CLEARING = our_account(AccountKind.CLEARING, LIVE, "GHS", "mtn")


@pytest.mark.decision("D39")
@pytest.mark.parametrize("operation", SPENDING)
def test_in_mode_p_what_goes_out_is_pending_first(operation: Operation) -> None:
    spending = movements.spending(attempt(operation))

    assert spending is not None
    assert spending.debit == account_of(55, SPENDING[operation], LIVE)
    assert (spending.kind, spending.amount, spending.reason) == ("pending", AMOUNT, "spent")
    assert movements.received(attempt(operation), NOON) is None


@pytest.mark.decision("D39")
@pytest.mark.parametrize("operation", RECEIVING)
def test_in_mode_p_what_comes_in_arrives_with_success(operation: Operation) -> None:
    received = movements.received(attempt(operation), NOON)

    assert movements.spending(attempt(operation)) is None
    assert received is not None
    assert (received.debit, received.credit, received.amount, received.kind) == (
        *(GHS_CLEARING, account_of(55, RECEIVING[operation], LIVE), AMOUNT, "posted"),
    )


def settled(operation: Operation, first: Outcome, then: Outcome) -> dict[Account, Decimal]:
    """What accounts have after a final outcome and a later report that contradicts it."""
    subject = attempt(operation)
    suspended = movements.suspended(subject._replace(contradicted_by=then), NOON)
    assert suspended is not None
    found = [suspended]
    if first is Outcome.SUCCEEDED:
        spending, received = movements.spending(subject), movements.received(subject, NOON)
        if spending is not None:
            found.append(LedgerLine(1, spending).posted(NOON, spending.credit))
        if received is not None:
            found.append(received)
    balances: dict[Account, Decimal] = {}
    for account, amount in chain.from_iterable(
        ((each.debit, -each.amount), (each.credit, each.amount)) for each in found
    ):
        balances[account] = balances.get(account, Decimal(0)) + amount
    return balances


@pytest.mark.decision("D39")
@pytest.mark.parametrize("operation", [*RECEIVING, *sorted(MONEY_OUT, key=lambda each: each.value)])
def test_after_a_contradiction_the_network_is_right_and_suspense_has_the_difference(
    operation: Operation,
) -> None:
    asset = "AIRTIME" if operation is Operation.AIRTIME else "GHS"
    outside = our_account(AccountKind.CLEARING, LIVE, asset, "mtn")
    suspense = our_account(AccountKind.SUSPENSE, LIVE, asset)
    comes_in = operation in RECEIVING

    taken_back = settled(operation, Outcome.SUCCEEDED, Outcome.FAILED)
    assert taken_back[outside] == 0
    assert taken_back[suspense] == (-AMOUNT if comes_in else AMOUNT)

    late = settled(operation, Outcome.FAILED, Outcome.SUCCEEDED)
    assert late[outside] == (-AMOUNT if comes_in else AMOUNT)
    assert late[suspense] == (AMOUNT if comes_in else -AMOUNT)


@pytest.mark.decision("D39")
def test_a_network_that_says_pending_has_moved_no_money() -> None:
    subject = attempt(outcome=Outcome.NOT_SENT, contradicted_by=Outcome.PENDING)

    assert movements.suspended(subject, NOON) is None


@pytest.mark.decision("D22")
@pytest.mark.parametrize("mode", ServiceMode)
@pytest.mark.parametrize(
    ("reason", "change"), [(Reason.CHARGE, -2), (Reason.REFUND, 2), (Reason.TOPUP, 2)]
)
def test_units_are_posted_in_both_modes(mode: ServiceMode, reason: Reason, change: int) -> None:
    moved = movements.units(reason, mode, 55, 2, "M1", NOON)

    assert (moved.kind, moved.account) == (TransferKind.POSTED, account_of(55, Wallet.SMS, mode))
    assert {str(moved.debit), str(moved.credit)} == {"issued/SMS", "service/55/sms/SMS"}
    assert signed(moved) == change


@pytest.mark.decision("D39")
@pytest.mark.parametrize("wallet", [Wallet.PAYOUT, Wallet.COLLECTION])
def test_nobody_tops_up_money(wallet: Wallet) -> None:
    with pytest.raises(BadTransfer, match="use a deposit"):
        movements.topup(55, wallet, 100, NOON)


def test_every_reason_says_which_accounts_it_moves_and_what_it_means() -> None:
    assert set(MOVEMENTS) == set(Reason)
    assert all(each.words for each in MOVEMENTS.values())


@pytest.mark.parametrize("amount", ["-1", "NaN", "Infinity"])
def test_an_amount_that_cannot_be_is_refused(amount: str) -> None:
    with pytest.raises(BadTransfer):
        transfer(Reason.TOPUP, account_of(), Decimal(amount), "", NOON)


@pytest.mark.decision("D21")
def test_in_mode_s_money_comes_from_the_clearing_of_the_sandbox() -> None:
    (collected,) = life(transaction(), Status.SUCCESSFUL)

    assert str(collected.debit) == "network/sandbox/clearing/GHS"
