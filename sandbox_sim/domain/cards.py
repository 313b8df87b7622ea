"""Test cards. Source: sandbox.6, D20. No full card number is ever kept: `masked` it first."""

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


def masked(number: str) -> str:
    """First six and last four digits; the rest, or all of a short number, as stars."""
    if len(number) < 12:
        return "*" * len(number)
    return number[:6] + "*" * (len(number) - 10) + number[-4:]
