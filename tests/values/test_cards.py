"""Test cards, and how a card number is shown."""

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.values import cards


@pytest.mark.spec("sandbox.6")
@pytest.mark.decision("D20")
def test_there_are_two_test_cards_of_each_brand() -> None:
    assert dict(cards.TEST_CARDS) == {
        "4111111111111111": "VIS",
        "4242424242424242": "VIS",
        "5555555555554444": "MAS",
        "5105105105105100": "MAS",
    }
    assert len(str(cards.SMALLEST)) == cards.SHORTEST == 13
    assert len(str(cards.TOO_LARGE - 1)) == 19


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
def test_a_masked_card_shows_its_first_six_and_last_four_digits_or_nothing(
    number: str, shown: str
) -> None:
    assert cards.masked(number) == shown


@pytest.mark.decision("D28")
@given(st.text("0123456789", max_size=24))
def test_a_masked_card_keeps_its_length_and_shows_at_most_ten_digits(number: str) -> None:
    shown = cards.masked(number)

    assert len(shown) == len(number)
    assert sum(char.isdigit() for char in shown) <= 10
    assert not number or "*" in shown


@pytest.mark.decision("D38")
@pytest.mark.parametrize(
    ("first", "last", "lengths"),
    [
        (400000, 499999, [13, 16, 19]),  # Visa
        (510000, 559999, [16]),  # Mastercard
        (222100, 272099, [16]),
        (340000, 349999, [15]),  # American Express
        (370000, 379999, [15]),
        (601100, 601199, [16, 17, 18, 19]),  # Discover
        (622126, 622925, [16, 17, 18, 19]),
        (644000, 659999, [16, 17, 18, 19]),  # and Verve
        (506099, 506198, [16, 17, 18, 19]),  # Verve
        (507865, 507964, [16, 17, 18, 19]),
    ],
)
def test_the_first_digits_decide_the_brand_and_its_lengths(
    first: int, last: int, lengths: list[int]
) -> None:
    for first_six in (first, last):
        assert list(cards.lengths(str(first_six))) == lengths
    for first_six in (first - 1, last + 1):
        assert list(cards.lengths(str(first_six))) == []
    for other in ("176725", "024400", ""):
        assert list(cards.lengths(other)) == []


@pytest.mark.decision("D38")
@pytest.mark.parametrize("number", [*cards.TEST_CARDS, "378282246310005", "79927398713"])
def test_the_last_digit_is_a_check_digit(number: str) -> None:
    for last in "0123456789":
        sums = cards.luhn_sums("7" + number[:-1] + last)

        assert cards.has_valid_check_digit(sums, 1, 1 + len(number)) is (last == number[-1])
