"""The words of the interface, and the accounts of billers, compared with its tables."""

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.values import vocabulary
from sandbox_sim.values.vocabulary import PaymentOption, Wallet
from tests.biller_accounts import LEADING

BANKS = [
    *("ACB", "ABS", "ADB", "ARB", "BOG", "BOA", "CAL", "CBG", "ECO", "FAB"),
    *("FBN", "FIB", "FNB", "GCB", "GHL", "GTB", "NIB", "OMN", "PRB", "RPB"),
    *("SGB", "SIS", "SCB", "STB", "UBA", "UMB", "ZEE", "ZEB"),
]


@pytest.mark.decision("D43")
@pytest.mark.spec("endpoint.1", "endpoint.2", "endpoint.3", "endpoint.4", "endpoint.6", "sandbox.6")
def test_the_vocabulary_is_that_of_the_interface() -> None:
    assert list(vocabulary.BANKS) == BANKS
    assert set(vocabulary.MOBILE_NETWORKS) == {"MTN", "VOD", "AIR"}
    assert set(vocabulary.CARD_BRANDS) == {"MAS", "VIS"}
    assert vocabulary.HOSTED_CARD == "CRD"
    assert set(vocabulary.CARD_CURRENCIES) == {"USD", "EUR", "GHS", "GBP"}
    assert vocabulary.DEFAULT_CURRENCY == "GHS"
    assert {str(option) for option in PaymentOption} == {"MOM", "CRD", "CRM", "BNK"}
    assert {wallet.value for wallet in Wallet} == {"payout", "collection", "sms", "airtime"}
    cards = (*vocabulary.CARD_BRANDS, vocabulary.HOSTED_CARD)
    codes = (*vocabulary.MOBILE_NETWORKS, *cards, *vocabulary.BANKS)
    assert len(codes) == len(set(codes)), "each code is of one kind"
    limits = (vocabulary.MAX_IDENTIFIER, vocabulary.MAX_REFERENCE, vocabulary.MAX_MESSAGE)
    assert limits == (255, 1_000, 10_000)


NW = st.sampled_from(sorted(LEADING))


@pytest.mark.spec("endpoint.5", "sandbox.7")
def test_each_of_17_billers_has_its_leading_digits() -> None:
    assert set(vocabulary.BILL_PRODUCTS) == set(LEADING)
    assert len(vocabulary.BILL_PRODUCTS) == 17
    assert dict(vocabulary.ACCOUNT_PREFIX) == LEADING


@pytest.mark.spec("sandbox.7")
@pytest.mark.decision("D19")
@given(NW, NW, st.text("0123456789", min_size=3, max_size=3))
def test_an_account_belongs_to_one_biller_and_its_last_three_digits_are_free(
    nw: str, other: str, ending: str
) -> None:
    account = LEADING[other] + "000000" + ending

    assert vocabulary.is_account_of(nw, account) is (nw == other)


@pytest.mark.decision("D19")
@given(st.text("0123456789", min_size=6, max_size=6).filter(lambda middle: int(middle) != 0))
def test_the_middle_of_an_account_is_six_zeros(middle: str) -> None:
    assert not vocabulary.is_account_of("ECG", f"200{middle}001")


@pytest.mark.spec("sandbox.7")
@pytest.mark.decision("D19")
@pytest.mark.parametrize(
    "account",
    [
        pytest.param("", id="nothing"),
        pytest.param("0244000001", id="a mobile number"),
        pytest.param("233244000001", id="a mobile number of twelve digits"),
        pytest.param("300000000001", id="an unknown biller"),
        pytest.param("20000000001", id="eleven digits"),
        pytest.param("2000000000001", id="thirteen digits"),
        pytest.param("200000000001\n", id="a line break after"),
        pytest.param("20000000000\n", id="a line break for a digit"),
        pytest.param("20000000000A", id="a letter"),
        pytest.param("20000000000\N{ARABIC-INDIC DIGIT ONE}", id="a digit that is not ASCII"),
        pytest.param("20000000000\N{SUPERSCRIPT TWO}", id="a superscript"),
    ],
)
def test_another_text_is_not_an_account(account: str) -> None:
    assert not vocabulary.is_account_of("ECG", account)
