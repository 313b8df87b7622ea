"""Accounts: the balances of the interface, and a posting for each movement of money."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.domain import ledger
from sandbox_sim.domain.ledger import Account, Audit, Balance, LedgerLine, LedgerQuery, Posting
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.vocabulary import Operation
from tests.domain.samples import NOON, PAYMENTS, SETTLED, transaction

SPENDING = {
    Operation.PAYOUT: Account.PAYOUT,
    Operation.BILL: Account.PAYOUT,
    Operation.AIRTIME: Account.AIRTIME,
}
RECEIVING = {
    Operation.COLLECT: Account.COLLECTION,
    Operation.CARD: Account.COLLECTION,
    Operation.DEPOSIT: Account.PAYOUT,
}
UNDONE = (Status.FAILED, Status.CANCELLED)
ENDS = (Status.SUCCESSFUL, *UNDONE)
AMOUNTS = st.decimals("0.01", 1_000_000, places=2)


def life(subject: Transaction, end: Status) -> list[Posting]:
    """What a transaction posts, from the 202 to its end."""
    steps = (subject, subject.moved(end, SETTLED))
    return [posting for step in steps if (posting := ledger.posting_for(step)) is not None]


@pytest.mark.spec("sandbox.9", "endpoint.8")
@pytest.mark.decision("D21")
@pytest.mark.parametrize("service_id", [1, 55, 90, 98, 1000])
def test_the_figures_of_any_service(service_id: int) -> None:
    figures = {account.value: ledger.fixed_balance(service_id, account) for account in Account}

    assert figures == {"collection": 100000, "payout": 10000, "sms": 500, "airtime": 1000}


@pytest.mark.spec("sandbox.9", "endpoint.8")
@pytest.mark.decision("D21")
@pytest.mark.parametrize("service_id", [9, 59, 99, 1009])
def test_the_figures_of_a_service_that_ends_in_9(service_id: int) -> None:
    figures = {account.value: ledger.fixed_balance(service_id, account) for account in Account}

    assert figures == {"collection": 10, "payout": 5, "sms": 0, "airtime": 1}


@pytest.mark.spec("sandbox.9")
@given(st.integers(0, 10**12))
def test_the_last_digit_of_a_service_decides(service_id: int) -> None:
    assert ledger.ends_in_nine(service_id) is str(service_id).endswith("9")


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
    assert repr(ledger.balance_number(Decimal(amount))) == written


@pytest.mark.spec("endpoint.8")
@given(st.decimals(-(10**9), 10**9, places=2))
def test_a_balance_keeps_its_value(amount: Decimal) -> None:
    assert ledger.balance_number(amount) == pytest.approx(float(amount), rel=1e-12, abs=0)


@pytest.mark.spec("endpoint.8")
def test_a_balance_of_less_than_a_millionth_keeps_it_too() -> None:
    assert ledger.balance_number(Decimal(5) - Decimal("4.9999999")) == 0.0000001


@pytest.mark.spec("sandbox.9", "sandbox.10", "limits")
@pytest.mark.decision("D21", "D22")
@pytest.mark.parametrize(
    ("service_id", "account", "amount"),
    [
        (55, Account.SMS, 500),
        (59, Account.SMS, 0),
        (55, Account.PAYOUT, 10000),
        (59, Account.PAYOUT, 5),
        (55, Account.COLLECTION, 100000),
        (59, Account.COLLECTION, 10),
        (55, Account.AIRTIME, 1000),
        (59, Account.AIRTIME, 1),
    ],
)
def test_accounts_open_with_the_figures(service_id: int, account: Account, amount: int) -> None:
    posting = ledger.opening_posting(service_id, account, 500, NOON)

    assert posting == Posting(service_id, account, Decimal(amount), "opening", "", NOON)


@pytest.mark.decision("D22")
@pytest.mark.parametrize(("service_id", "units"), [(55, 20), (59, 0)])
def test_the_opening_units_are_a_setting_but_for_a_service_that_ends_in_9(
    service_id: int, units: int
) -> None:
    assert ledger.opening_posting(service_id, Account.SMS, 20, NOON).amount == units


@pytest.mark.decision("D22")
def test_the_opening_units_touch_no_other_account() -> None:
    assert ledger.opening_posting(55, Account.PAYOUT, 20, NOON).amount == 10000


# Any amount that a JSON number can say.
FLOATS = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: Decimal(repr(number)))


@pytest.mark.decision("D21", "D22")
@given(st.lists(FLOATS, min_size=1))
def test_a_balance_is_the_sum_of_its_postings_to_the_last_digit(amounts: list[Decimal]) -> None:
    balance = Balance(Decimal(0), NOON)
    for amount in amounts:
        balance = balance.after(Posting(55, Account.PAYOUT, amount, "deposited", "", SETTLED))

    assert Fraction(balance.amount) == sum(map(Fraction, amounts))
    assert balance == (ledger.exact_sum(amounts), SETTLED)


@pytest.mark.decision("D22")
@pytest.mark.parametrize(("balance", "agrees"), [("500", True), ("500.0", True), ("499", False)])
def test_an_audit_agrees_where_balance_and_sum_are_the_same(balance: str, agrees: bool) -> None:
    assert Audit(55, Account.SMS, Decimal(balance), Decimal(500)).agrees is agrees


@pytest.mark.decision("D22")
@pytest.mark.parametrize(
    ("query", "admitted"),
    [
        (LedgerQuery(), True),
        (LedgerQuery(55, Account.SMS, "charge", "M1", after=8), True),
        (LedgerQuery(after=7), False),
        (LedgerQuery(after=6), False),
        (LedgerQuery(56), False),
        (LedgerQuery(account=Account.PAYOUT), False),
        (LedgerQuery(reason="refund"), False),
        (LedgerQuery(subject=""), False),
    ],
)
def test_a_line_must_meet_all_that_is_asked_for(query: LedgerQuery, admitted: bool) -> None:
    line = LedgerLine(7, Posting(55, Account.SMS, Decimal(-1), "charge", "M1", NOON))

    assert query.matches(line) is admitted


@pytest.mark.decision("D21")
@pytest.mark.parametrize("operation", PAYMENTS)
def test_where_the_money_of_an_operation_comes_from(operation: Operation) -> None:
    assert ledger.spent_from(operation) == SPENDING.get(operation)


@pytest.mark.decision("D21")
@pytest.mark.parametrize("operation", SPENDING)
@given(amount=AMOUNTS)
def test_money_that_leaves_does_so_at_acceptance_and_once(
    operation: Operation, amount: Decimal
) -> None:
    (spent,) = life(transaction(operation, amount=amount), Status.SUCCESSFUL)

    assert spent == Posting(55, SPENDING[operation], -amount, "spent", "12345678901", NOON)


@pytest.mark.decision("D21")
@pytest.mark.parametrize("operation", SPENDING)
@pytest.mark.parametrize("end", UNDONE)
@given(amount=AMOUNTS)
def test_money_that_was_spent_for_nothing_comes_back_whole(
    operation: Operation, end: Status, amount: Decimal
) -> None:
    spent, returned = life(transaction(operation, amount=amount), end)

    assert spent.amount + returned.amount == 0
    assert spent.account is returned.account is SPENDING[operation]
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

    assert received == Posting(55, RECEIVING[operation], amount, reason, "12345678901", SETTLED)


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

    for account in Account:
        held = sum(posting.amount for posting in postings if posting.account is account)
        assert held == sum(
            amount if RECEIVING.get(operation) is account else -amount
            for operation, end, amount in payments
            if end is Status.SUCCESSFUL
            and account in {RECEIVING.get(operation), SPENDING.get(operation)}
        )
