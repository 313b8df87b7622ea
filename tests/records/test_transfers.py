"""Transfers: their effect on the balance of a wallet, their shown form, and queries."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given, strategies as st

from sandbox_sim.records.ledger import (
    Account,
    AccountKind,
    Balance,
    LedgerLine,
    LedgerQuery,
    Overdrawn,
    TransferKind,
    empty_balance,
    ending_problem,
    our_account,
    parse_account,
    shown,
    wallet_of,
)
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet
from tests.live_records import CLEARING, COLLECTION, PAYOUT, paid_in, set_aside
from tests.sample_records import NOW, SERVICE, account_of, after, posting, signed

SANDBOX, LIVE = ServiceMode

# Any amount that a JSON number can have.
FLOATS = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: Decimal(repr(number)))

# A currency is any text of the client; the name of a network is a part of addresses.
ASSETS = st.text(min_size=1)

NETWORKS = st.text(min_size=1).filter(lambda text: "/" not in text)

ACCOUNTS = st.one_of(
    st.builds(wallet_of, st.just(LIVE), st.integers(1), st.sampled_from(Wallet), ASSETS),
    st.builds(our_account, st.sampled_from(["fees", "issued", "suspense"]).map(AccountKind),
              st.just(LIVE), ASSETS),
    st.builds(our_account, st.just(AccountKind.CLEARING), st.just(LIVE), ASSETS, NETWORKS),
)  # fmt: skip


@pytest.mark.decision("D39")
@given(ACCOUNTS)
@example(wallet_of(LIVE, SERVICE, Wallet.PAYOUT, "a/b/c"))
@example(our_account(AccountKind.CLEARING, LIVE, "a/b/c", "mtn"))
def test_an_account_is_read_back_from_its_name(account: Account) -> None:
    assert parse_account(LIVE, str(account)) == account


@pytest.mark.decision("D39")
def test_only_a_pending_transfer_of_the_same_wallet_can_end() -> None:
    end = LedgerLine(1, set_aside()).voided(NOW)

    assert ending_problem(set_aside(), end) == ""
    for other in (paid_in(into=PAYOUT), set_aside()._replace(debit=COLLECTION)):
        assert ending_problem(other, end) == "it is not a pending transfer of this wallet"


@pytest.mark.decision("D21", "D22")
@given(st.lists(FLOATS, min_size=1))
def test_a_balance_is_the_sum_of_its_transfers_to_the_last_digit(amounts: list[Decimal]) -> None:
    balance = empty_balance(NOW)
    for amount in amounts:
        made = posting(amount, at=after(hours=1))
        balance = balance.after(account_of(), made)
        assert Decimal(shown(made)["amount"]) == signed(made)

    assert Fraction(balance.amount) == sum(map(Fraction, amounts))
    assert balance.updated_at == after(hours=1)


@pytest.mark.decision("D39")
@given(st.integers(0, 100), st.integers(0, 100), st.data())
def test_a_pending_amount_is_not_available_until_it_ends(
    has: int, wanted: int, data: st.DataObject
) -> None:
    balance = empty_balance(NOW).after(PAYOUT, paid_in(str(has), PAYOUT))
    pending = LedgerLine(1, set_aside(str(wanted)))
    if wanted > has:
        with pytest.raises(Overdrawn):
            balance.after(PAYOUT, pending.transfer)
        return
    reserved = balance.after(PAYOUT, pending.transfer)
    assert reserved == Balance(Decimal(has - wanted), Decimal(wanted), NOW)
    assert reserved.amount == has

    part = data.draw(st.integers(0, wanted))
    posted = reserved.after(PAYOUT, pending.posted(NOW, CLEARING, Decimal(part)), pending.transfer)
    assert posted == Balance(Decimal(has - part), Decimal(0), NOW)
    assert reserved.after(PAYOUT, pending.voided(NOW), pending.transfer) == balance


def test_only_a_wallet_of_the_sandbox_may_be_below_zero() -> None:
    spent = posting("-1", account=Wallet.PAYOUT)
    live = posting("-1", account=Wallet.PAYOUT, mode=LIVE)

    assert empty_balance(NOW).after(spent.debit, spent).available == -1
    with pytest.raises(Overdrawn, match="service/55/payout/GHS has 0, less than 1"):
        empty_balance(NOW).after(live.debit, live)
    # Units and airtime are assets as currencies are.
    assert [str(account_of(SERVICE, wallet)) for wallet in Wallet] == [
        *("service/55/payout/GHS", "service/55/collection/GHS"),
        *("service/55/sms/SMS", "service/55/airtime/AIRTIME"),
    ]


@pytest.mark.parametrize(
    ("query", "admitted"),
    [
        (LedgerQuery(), True),
        (LedgerQuery(55, Wallet.SMS, "charge", "M1", after=8, mode=SANDBOX), True),
        (LedgerQuery(after=7), False),
        (LedgerQuery(after=6), False),
        (LedgerQuery(56), False),
        (LedgerQuery(account=Wallet.PAYOUT), False),
        (LedgerQuery(reason="refund"), False),
        (LedgerQuery(subject=""), False),
        (LedgerQuery(mode=LIVE), False),
    ],
)
def test_a_query_matches_a_line_that_passes_all_filters(query: LedgerQuery, admitted: bool) -> None:
    line = LedgerLine(7, posting("-1", reason="charge", subject="M1"))

    assert query.matches(line) is admitted


def test_a_transfer_is_shown_from_the_side_of_its_wallet() -> None:
    between_ours = paid_in()._replace(
        credit=our_account(AccountKind.SUSPENSE, LIVE, "GHS"), amount=Decimal("1.50")
    )
    end = LedgerLine(3, set_aside()).posted(NOW, CLEARING, Decimal(4))

    assert shown(end) == {
        "mode": "P",
        "kind": TransferKind.POST,
        "service_id": 55,
        "account": "payout",
        "amount": "-4",
        "reason": "spent",
        "subject": "10000000001",
        "at": "2026-01-01T09:00:00.000Z",
        "debit": "service/55/payout/GHS",
        "credit": "network/mtn/clearing/GHS",
        "pending": 3,
    }
    ours = shown(between_ours)
    assert (ours["service_id"], ours["account"], ours["amount"]) == (None, None, "1.5")
