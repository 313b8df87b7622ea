"""Test cards. Source: sandbox.6, D20. No full card number is ever kept: `masked` it first."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

Brand = Literal["VIS", "MAS"]

TEST_CARDS: Final[Mapping[str, Brand]] = MappingProxyType(
    {
        "4111111111111111": "VIS",
        "4242424242424242": "VIS",
        "5555555555554444": "MAS",
        "5105105105105100": "MAS",
    }
)
_LONG_NUMBER: Final = re.compile(r"[0-9]{13,19}")


def masked(number: str) -> str:
    """First six and last four digits; the rest, or all of a short number, as stars."""
    if len(number) < 12:
        return "*" * len(number)
    return number[:6] + "*" * (len(number) - 10) + number[-4:]


def may_be_card(number: str) -> bool:
    """Whether these digits could be a card: a first digit of card brands, and a fitting last one.

    The last digit is checked as ISO/IEC 7812 has it.
    """
    digits = [int(digit) for digit in reversed(number)]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return number[0] in "23456" and (sum(digits[::2]) + sum(doubled)) % 10 == 0


def kept(number: str) -> str:
    """A number of whatever kind as it may be kept: masked if it may be a card's."""
    is_card = _LONG_NUMBER.fullmatch(number) and may_be_card(number)
    return masked(number) if is_card else number
