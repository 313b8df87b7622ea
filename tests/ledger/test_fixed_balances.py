"""The balances that the interface defines for every service."""

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.ledger.movements import balance_number, ends_in_nine, fixed_balance
from sandbox_sim.values.vocabulary import Wallet


@pytest.mark.spec("sandbox.9", "endpoint.8")
@pytest.mark.decision("D21")
@pytest.mark.parametrize("service_id", [1, 55, 90, 98, 1000])
def test_the_figures_of_any_service(service_id: int) -> None:
    figures = {account.value: fixed_balance(service_id, account) for account in Wallet}

    assert figures == {"collection": 100000, "payout": 10000, "sms": 500, "airtime": 1000}


@pytest.mark.spec("sandbox.9", "endpoint.8")
@pytest.mark.decision("D21")
@pytest.mark.parametrize("service_id", [9, 59, 99, 1009])
def test_the_figures_of_a_service_that_ends_in_9(service_id: int) -> None:
    figures = {account.value: fixed_balance(service_id, account) for account in Wallet}

    assert figures == {"collection": 10, "payout": 5, "sms": 0, "airtime": 1}


@pytest.mark.spec("sandbox.9")
@given(st.integers(0, 10**12))
def test_the_last_digit_of_a_service_decides(service_id: int) -> None:
    assert ends_in_nine(service_id) is str(service_id).endswith("9")


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
@given(st.decimals(-(10**9), 10**9, places=2))
def test_a_balance_keeps_its_value(amount: Decimal) -> None:
    assert balance_number(amount) == pytest.approx(float(amount), rel=1e-12, abs=0)


@pytest.mark.spec("endpoint.8")
def test_a_balance_of_less_than_a_millionth_keeps_it_too() -> None:
    assert balance_number(Decimal(5) - Decimal("4.9999999")) == 0.0000001
