"""The words of the interface, compared with its tables."""

import pytest

from sandbox_sim.values import vocabulary
from sandbox_sim.values.vocabulary import PaymentOption, Wallet

BANKS = [
    *("ACB", "ABS", "ADB", "ARB", "BOG", "BOA", "CAL", "CBG", "ECO", "FAB"),
    *("FBN", "FIB", "FNB", "GCB", "GHL", "GTB", "NIB", "OMN", "PRB", "RPB"),
    *("SGB", "SIS", "SCB", "STB", "UBA", "UMB", "ZEE", "ZEB"),
]


@pytest.mark.spec("endpoint.1", "endpoint.2", "endpoint.3", "endpoint.4", "endpoint.6", "sandbox.6")
def test_the_words_are_those_of_the_interface() -> None:
    assert list(vocabulary.BANKS) == BANKS
    assert set(vocabulary.MOBILE_NETWORKS) == {"MTN", "VOD", "AIR"}
    assert set(vocabulary.CARD_BRANDS) == {"MAS", "VIS"}
    assert vocabulary.HOSTED_CARD == "CRD"
    assert set(vocabulary.CARD_CURRENCIES) == {"USD", "EUR", "GHS", "GBP"}
    assert vocabulary.DEFAULT_CURRENCY == "GHS"
    assert {str(option) for option in PaymentOption} == {"MOM", "CRD", "CRM", "BNK"}
    assert {wallet.value for wallet in Wallet} == {"payout", "collection", "sms", "airtime"}


@pytest.mark.decision("D43")
def test_texts_are_at_most_so_long() -> None:
    assert (vocabulary.MAX_IDENTIFIER, vocabulary.MAX_REFERENCE) == (255, 1_000)
    assert vocabulary.MAX_MESSAGE == 10_000


def test_no_code_of_one_kind_is_a_code_of_another() -> None:
    codes = [
        *vocabulary.MOBILE_NETWORKS,
        *vocabulary.CARD_BRANDS,
        vocabulary.HOSTED_CARD,
        *vocabulary.BANKS,
    ]

    assert len(codes) == len(set(codes))
