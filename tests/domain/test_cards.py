"""Test cards, and how a card number is shown."""

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.domain import cards


@pytest.mark.spec("sandbox.6")
@pytest.mark.decision("D20")
def test_four_test_cards_two_of_each_brand() -> None:
    assert dict(cards.TEST_CARDS) == {
        "4111111111111111": "VIS",
        "4242424242424242": "VIS",
        "5555555555554444": "MAS",
        "5105105105105100": "MAS",
    }


@pytest.mark.decision("D28")
@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("4111111111111111", "411111******1111"),
        ("5105105105105100", "510510******5100"),
        ("378282246310005", "378282*****0005"),
        ("411111111111", "411111**1111"),
        ("41111111111", "***********"),
        ("1234", "****"),
        ("", ""),
    ],
)
def test_a_masked_card_shows_six_digits_and_four_or_nothing(number: str, shown: str) -> None:
    assert cards.masked(number) == shown


@pytest.mark.decision("D28")
@given(st.text("0123456789", max_size=24))
def test_a_masked_card_is_as_long_and_never_tells_more_than_ten_digits(number: str) -> None:
    shown = cards.masked(number)

    assert len(shown) == len(number)
    assert sum(char.isdigit() for char in shown) <= 10
    assert not number or "*" in shown


@pytest.mark.parametrize(
    ("number", "may_be"),
    [
        *((number, True) for number in cards.TEST_CARDS),
        ("4111111111111112", False),
        ("378282246310005", True),
        ("1767258000123", False),
        ("7992739871300000", False),
    ],
)
def test_a_card_is_told_from_other_long_numbers(number: str, may_be: bool) -> None:
    assert cards.may_be_card(number) is may_be
