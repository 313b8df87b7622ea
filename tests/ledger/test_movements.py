"""The transfers that payments and messages make, in both modes, and the balances of mode S."""

from decimal import Decimal
from itertools import chain

import pytest
from hypothesis import example, given, strategies as st

from sandbox_sim.ledger import movements
from sandbox_sim.ledger.movements import balance_number, fixed_balance
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
    make_transfer,
    our_account,
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

AMOUNTS = st.decimals("0.01", 1_000_000, places=2)


def life(subject: TransactionRecord, end: Status) -> list[Transfer]:
    """The transfers of a transaction of mode S, from the 202 to its end."""
    steps = (subject, subject.with_status(end, SETTLED))
    return [moved for step in steps if (moved := movements.of_transaction(step)) is not None]


@pytest.mark.spec("sandbox.9", "sandbox.10", "limits")
@pytest.mark.decision("D21", "D22")
@pytest.mark.parametrize("account", Wallet)
@pytest.mark.parametrize("service_id", [55, 59])
def test_an_account_opens_with_its_figure_and_a_setting_replaces_most_units(
    service_id: int, account: Wallet
) -> None:
    made = movements.opening(service_id, account, 500, NOON)
    with_setting = movements.opening(service_id, account, 20, NOON)

    assert (made.account, made.credit) == (account_of(service_id, account),) * 2
    assert (made.amount, made.at) == (fixed_balance(service_id, account), NOON)
    assert (made.reason, made.subject) == (Reason.OPENING, "")
    expected = 20 if (service_id, account) == (55, Wallet.SMS) else made.amount
    assert with_setting.amount == expected


@pytest.mark.decision("D21")
@pytest.mark.parametrize("operation", SPENDING)
@given(amount=AMOUNTS)
def test_a_payment_that_spends_moves_money_at_acceptance_and_back_without_success(
    operation: Operation, amount: Decimal
) -> None:
    subject, wallet = transaction(operation, amount=amount), account_of(55, SPENDING[operation])
    (spent,) = life(subject, Status.SUCCESSFUL)

    assert (spent.debit, spent.account, spent.amount) == (wallet, wallet, amount)
    assert (spent.reason, spent.subject, spent.at) == ("spent", "12345678901", NOON)
    for end in UNDONE:
        first, returned = life(subject, end)
        assert first == spent
        assert (returned.credit, returned.debit, returned.amount) == (wallet, spent.credit, amount)
        assert (returned.reason, returned.subject) == ("returned", spent.subject)
        assert (returned.account, returned.at) == (wallet, SETTLED)


@pytest.mark.decision("D21")
@pytest.mark.parametrize("operation", RECEIVING)
@given(amount=AMOUNTS)
def test_a_payment_that_receives_moves_money_only_with_success(
    operation: Operation, amount: Decimal
) -> None:
    subject, wallet = transaction(operation, amount=amount), account_of(55, RECEIVING[operation])
    (received,) = life(subject, Status.SUCCESSFUL)
    reason = "deposited" if operation is Operation.DEPOSIT else "collected"

    assert str(received.debit) == "network/sandbox/clearing/GHS"
    assert (received.credit, received.account, received.amount) == (wallet, wallet, amount)
    assert (received.reason, received.subject, received.at) == (reason, "12345678901", SETTLED)
    assert [life(subject, end) for end in UNDONE] == [[], []]


AMOUNT = Decimal("10.50")

GHS_CLEARING = our_account(AccountKind.CLEARING, LIVE, "GHS", "mtn")


@pytest.mark.decision("D39")
@pytest.mark.parametrize("operation", PAYMENTS)
def test_in_mode_p_spending_is_pending_first_and_receiving_is_posted_at_success(
    operation: Operation,
) -> None:
    spending = movements.spending(attempt(operation))
    received = movements.received(attempt(operation), NOON)
    contradicted = attempt(outcome=Outcome.NOT_SENT, contradicted_by=Outcome.PENDING)

    if operation in SPENDING:
        assert received is None
        assert spending is not None
        assert spending.debit == account_of(55, SPENDING[operation], LIVE)
        assert (spending.kind, spending.amount, spending.reason) == ("pending", AMOUNT, "spent")
    else:
        assert spending is None
        assert received is not None
        assert (received.debit, received.credit, received.amount, received.kind) == (
            *(GHS_CLEARING, account_of(55, RECEIVING[operation], LIVE), AMOUNT, "posted"),
        )
    assert movements.suspended(contradicted, NOON) is None, "a pending report moves no money"
    assert movements.suspended(attempt(operation), NOON) is None, "without a contradiction"


def settled(operation: Operation, first: Outcome, then: Outcome) -> dict[Account, Decimal]:
    """The balances after a final outcome and a later report that contradicts it."""
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
def test_a_contradiction_follows_the_network_and_puts_the_difference_in_suspense(
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


@pytest.mark.decision("D22")
@pytest.mark.parametrize("mode", ServiceMode)
@pytest.mark.parametrize(
    ("reason", "change"), [(Reason.CHARGE, -2), (Reason.REFUND, 2), (Reason.TOPUP, 2)]
)
def test_units_are_posted_in_both_modes(mode: ServiceMode, reason: Reason, change: int) -> None:
    moved = movements.sms_units(reason, mode, 55, 2, "M1", NOON)

    assert (moved.kind, moved.account) == (TransferKind.POSTED, account_of(55, Wallet.SMS, mode))
    assert {str(moved.debit), str(moved.credit)} == {"issued/SMS", "service/55/sms/SMS"}
    assert signed(moved) == change


@pytest.mark.decision("D39")
def test_a_topup_of_money_and_an_invalid_amount_are_refused() -> None:
    for wallet in (Wallet.PAYOUT, Wallet.COLLECTION):
        with pytest.raises(BadTransfer, match="use a deposit"):
            movements.topup(55, wallet, 100, NOON)
    for amount in ("-1", "NaN", "Infinity"):
        with pytest.raises(BadTransfer):
            make_transfer(Reason.TOPUP, account_of(), Decimal(amount), "", NOON)


def test_every_reason_has_its_accounts_and_a_text() -> None:
    assert set(MOVEMENTS) == set(Reason)
    assert all(each.words for each in MOVEMENTS.values())


@pytest.mark.spec("sandbox.9", "endpoint.8")
@pytest.mark.decision("D21")
@pytest.mark.parametrize(
    ("services", "figures"),
    [
        (
            (1, 55, 90, 98, 1000),
            {"collection": 100000, "payout": 10000, "sms": 500, "airtime": 1000},
        ),
        ((9, 59, 99, 1009), {"collection": 10, "payout": 5, "sms": 0, "airtime": 1}),
    ],
)
def test_the_figures_of_a_service_depend_on_its_last_digit(
    services: tuple[int, ...], figures: dict[str, int]
) -> None:
    for service_id in services:
        assert {each.value: fixed_balance(service_id, each) for each in Wallet} == figures


@pytest.mark.spec("sandbox.9")
@pytest.mark.parametrize(
    ("amount", "written"),
    [
        ("100000", "100000"),
        ("10.0", "10.0"),
        ("5.0", "5.0"),
        ("0", "0"),
        ("10010.50", "10010.5"),
        ("-3", "-3"),
    ],
)
def test_a_balance_is_written_as_the_interface_writes_it(amount: str, written: str) -> None:
    assert repr(balance_number(Decimal(amount))) == written


@pytest.mark.spec("endpoint.8")
@example(Decimal("1E-7"))
@given(st.decimals(-(10**9), 10**9, places=2))
def test_a_balance_keeps_its_value(amount: Decimal) -> None:
    assert balance_number(amount) == pytest.approx(float(amount), rel=1e-12, abs=0)
