"""The words of the interface, compared with its tables."""

import pytest

from sandbox_sim.domain import vocabulary
from sandbox_sim.domain.vocabulary import Operation, PaymentOption

BANKS = [
    *("ACB", "ABS", "ADB", "ARB", "BOG", "BOA", "CAL", "CBG", "ECO", "FAB"),
    *("FBN", "FIB", "FNB", "GCB", "GHL", "GTB", "NIB", "OMN", "PRB", "RPB"),
    *("SGB", "SIS", "SCB", "STB", "UBA", "UMB", "ZEE", "ZEB"),
]


@pytest.mark.spec("endpoint.4")
@pytest.mark.parametrize("bank", BANKS)
def test_a_payout_can_go_to_each_bank(bank: str) -> None:
    assert bank in vocabulary.BANKS


@pytest.mark.spec("endpoint.4")
def test_there_are_28_banks_and_none_twice() -> None:
    assert len(vocabulary.BANKS) == len(set(vocabulary.BANKS)) == 28


@pytest.mark.spec("endpoint.1", "endpoint.3", "endpoint.6")
def test_three_mobile_networks() -> None:
    assert set(vocabulary.MOBILE_NETWORKS) == {"MTN", "VOD", "AIR"}


@pytest.mark.spec("endpoint.2", "endpoint.4", "sandbox.6")
def test_two_card_brands_and_one_code_for_the_hosted_page() -> None:
    assert set(vocabulary.CARD_BRANDS) == {"MAS", "VIS"}
    assert vocabulary.HOSTED_CARD == "CRD"


@pytest.mark.spec("endpoint.2")
def test_four_currencies_for_cards() -> None:
    assert set(vocabulary.CARD_CURRENCIES) == {"USD", "EUR", "GHS", "GBP"}


def test_the_currency_is_cedi_where_none_came() -> None:
    assert vocabulary.DEFAULT_CURRENCY == "GHS"


@pytest.mark.spec("endpoint.1", "endpoint.2", "endpoint.4", "endpoint.5")
@pytest.mark.decision("D28")
def test_payment_options_and_the_two_modes_that_stand_in_for_one() -> None:
    assert {str(option) for option in PaymentOption} == {"MOM", "CRD", "CRM", "BNK", "BLP", "ATP"}


def test_no_code_of_one_kind_is_a_code_of_another() -> None:
    codes = [
        *vocabulary.MOBILE_NETWORKS,
        *vocabulary.CARD_BRANDS,
        vocabulary.HOSTED_CARD,
        *vocabulary.BANKS,
    ]

    assert len(codes) == len(set(codes))


def test_twelve_operations() -> None:
    assert len(Operation) == 12
