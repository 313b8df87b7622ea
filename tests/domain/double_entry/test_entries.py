"""Entries are balanced by construction, and no service is ever below zero."""

from collections import defaultdict
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.domain.double_entry import accounts
from sandbox_sim.domain.double_entry.accounts import Account
from sandbox_sim.domain.double_entry.entries import (
    BadTransfer,
    Entry,
    Overdrawn,
    Reason,
    Transfer,
    post,
)
from sandbox_sim.domain.ledger import Account as Wallet
from tests.domain.samples import NOON

pytestmark = pytest.mark.decision("D39")

AVAILABLE = accounts.available(55, Wallet.PAYOUT, "GHS")
HELD = accounts.held(55, Wallet.PAYOUT, "GHS")
CLEARING = accounts.clearing("mtn", "GHS")
SUSPENSE = accounts.suspense("GHS")
AMOUNTS = st.decimals("0.01", 10**17, places=2)


def entry(*transfers: Transfer) -> Entry:
    return Entry(Reason.COLLECTED, "T1", NOON, transfers)


@st.composite
def transfers(draw: st.DrawFn) -> Transfer:
    source, target = draw(
        st.permutations([AVAILABLE, HELD, CLEARING, SUSPENSE]).map(lambda found: found[:2])
    )
    return Transfer(source, target, draw(AMOUNTS))


@given(st.lists(transfers(), min_size=1))
def test_every_asset_of_an_entry_sums_to_zero(chosen: list[Transfer]) -> None:
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for account, amount in entry(*chosen).legs:
        sums[account.asset] += amount

    assert set(sums.values()) == {Decimal(0)}


@pytest.mark.parametrize(
    "transfer",
    [
        Transfer(CLEARING, AVAILABLE, Decimal(0)),
        Transfer(CLEARING, AVAILABLE, Decimal(-1)),
        Transfer(CLEARING, AVAILABLE, Decimal("NaN")),
        Transfer(CLEARING, AVAILABLE, Decimal("Infinity")),
        Transfer(CLEARING, CLEARING, Decimal(1)),
        Transfer(CLEARING, accounts.suspense("USD"), Decimal(1)),
    ],
)
def test_what_is_no_transfer_makes_no_entry(transfer: Transfer) -> None:
    with pytest.raises(BadTransfer):
        entry(transfer)


def test_an_entry_without_a_transfer_is_none() -> None:
    with pytest.raises(BadTransfer):
        entry()


def test_posting_gives_the_new_balances() -> None:
    found = post({CLEARING: Decimal(5)}, entry(Transfer(CLEARING, AVAILABLE, Decimal("7.50"))))

    assert found == {CLEARING: Decimal("-2.50"), AVAILABLE: Decimal("7.50")}


def test_a_service_cannot_spend_what_it_has_not() -> None:
    spent = entry(Transfer(AVAILABLE, HELD, Decimal("10.01")))

    with pytest.raises(Overdrawn) as raised:
        post({AVAILABLE: Decimal(10)}, spent)

    assert (raised.value.balance, raised.value.wanted) == (Decimal(10), Decimal("10.01"))


def test_sums_keep_the_last_digit_of_large_amounts() -> None:
    large = Decimal("99999999999999999999999999999999.99")

    found = post({AVAILABLE: large}, entry(Transfer(CLEARING, AVAILABLE, Decimal("0.01"))))

    assert found[AVAILABLE] == Decimal("100000000000000000000000000000000.00")


@pytest.mark.parametrize(
    ("account", "name"),
    [
        (AVAILABLE, "service/55/payout/available/GHS"),
        (accounts.held(55, Wallet.AIRTIME, "GHS"), "service/55/airtime/held/AIRTIME"),
        (accounts.available(55, Wallet.SMS, "GHS"), "service/55/sms/available/SMS"),
        (CLEARING, "network/mtn/clearing/GHS"),
        (SUSPENSE, "suspense/GHS"),
        (accounts.fees("GHS"), "fees/GHS"),
        (accounts.issued("SMS"), "issued/SMS"),
    ],
)
def test_accounts_have_names_that_people_read(account: Account, name: str) -> None:
    assert str(account) == name
