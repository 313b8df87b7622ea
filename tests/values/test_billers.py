"""Billers and their sandbox accounts, compared with sandbox rule 7."""

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.values import vocabulary
from tests.biller_accounts import LEADING

NW = st.sampled_from(sorted(LEADING))

LAST_THREE = st.text("0123456789", min_size=3, max_size=3)


@pytest.mark.spec("endpoint.5")
def test_there_are_17_bill_products() -> None:
    assert set(vocabulary.BILL_PRODUCTS) == set(LEADING)
    assert len(vocabulary.BILL_PRODUCTS) == 17


@pytest.mark.spec("sandbox.7")
def test_each_biller_has_its_leading_digits() -> None:
    assert dict(vocabulary.ACCOUNT_PREFIX) == LEADING


@pytest.mark.spec("sandbox.7")
@pytest.mark.decision("D19")
@given(NW, NW, LAST_THREE)
def test_an_account_belongs_to_one_biller_and_its_last_three_digits_are_free(
    nw: str, other: str, ending: str
) -> None:
    account = LEADING[other] + "000000" + ending

    assert vocabulary.is_account_of(nw, account) is (nw == other)


@pytest.mark.decision("D19")
@given(st.text("0123456789", min_size=6, max_size=6).filter(lambda middle: int(middle) != 0))
def test_the_middle_is_six_zeros(middle: str) -> None:
    assert not vocabulary.is_account_of("ECG", f"200{middle}001")


@pytest.mark.spec("sandbox.7")
@pytest.mark.decision("D19")
@pytest.mark.parametrize(
    "account",
    [
        pytest.param("", id="nothing"),
        pytest.param("0244000001", id="a mobile number"),
        pytest.param("233244000001", id="a mobile number of twelve digits"),
        pytest.param("300000000001", id="nobody's account"),
        pytest.param("20000000001", id="eleven digits"),
        pytest.param("2000000000001", id="thirteen digits"),
        pytest.param("200000000001\n", id="a line break after"),
        pytest.param("20000000000\n", id="a line break for a digit"),
        pytest.param("20000000000A", id="a letter"),
        pytest.param("20000000000\N{ARABIC-INDIC DIGIT ONE}", id="a digit that is not ASCII"),
        pytest.param("20000000000\N{SUPERSCRIPT TWO}", id="a superscript"),
    ],
)
def test_anything_else_is_no_account(account: str) -> None:
    assert not vocabulary.is_account_of("ECG", account)
