"""Card numbers: the test cards, and how to recognise a card number.

Source: sandbox.6, D20, D38. No full card number is ever stored: see `values.redaction`.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final, Literal

LuhnSums = Sequence[Sequence[int]]

Brand = Literal["VIS", "MAS"]


TEST_CARDS: Final[Mapping[str, Brand]] = {
    "4111111111111111": "VIS",
    "4242424242424242": "VIS",
    "5555555555554444": "MAS",
    "5105105105105100": "MAS",
}

# How many digits stay readable at each end of a masked card number.
FIRST_SHOWN: Final = 6

LAST_SHOWN: Final = 4

_SIXTEEN: Final = range(16, 17)

_SIXTEEN_TO_NINETEEN: Final = range(16, 20)

# Ranges of the first six digits of each brand, both ends included, and the lengths.
_BRANDS: Final = (
    (400000, 499999, range(13, 22, 3)),  # Visa: 13, 16 or 19
    (510000, 559999, _SIXTEEN),  # Mastercard
    (222100, 272099, _SIXTEEN),  # Mastercard
    (340000, 349999, range(15, 16)),  # American Express
    (370000, 379999, range(15, 16)),  # American Express
    (601100, 601199, _SIXTEEN_TO_NINETEEN),  # Discover
    (622126, 622925, _SIXTEEN_TO_NINETEEN),  # Discover
    (644000, 659999, _SIXTEEN_TO_NINETEEN),  # Discover, and Verve from 650002 to 650027
    (506099, 506198, _SIXTEEN_TO_NINETEEN),  # Verve
    (507865, 507964, _SIXTEEN_TO_NINETEEN),  # Verve
)


def _first_two_digits() -> Mapping[str, str]:
    """For each first digit of card numbers the digits that may follow it."""
    ranges = (range(low // 10_000, high // 10_000 + 1) for low, high, _ in _BRANDS)
    found: dict[str, str] = {}
    for two in sorted(set().union(*ranges)):
        first, second = divmod(two, 10)
        found[str(first)] = found.get(str(first), "") + str(second)
    return found


FIRST_TWO_DIGITS: Final = _first_two_digits()

SHORTEST: Final = 13

# Integers as long as a card number run from SMALLEST up to TOO_LARGE, exclusive.
SMALLEST: Final = 10**12

TOO_LARGE: Final = 10**19


def masked(number: str) -> str:
    """The number with its first six and last four digits; one below 12 digits becomes all stars."""
    if len(number) < 12:
        return "*" * len(number)
    hidden = len(number) - FIRST_SHOWN - LAST_SHOWN
    return number[:FIRST_SHOWN] + "*" * hidden + number[-LAST_SHOWN:]


def lengths(first_six: str) -> range:
    """The lengths of card numbers that begin with these six digits; empty if there are none."""
    if first_six[:1] in FIRST_TWO_DIGITS:
        number = int(first_six)
        for low, high, found in _BRANDS:
            if low <= number <= high:
                return found
    return range(0)


def luhn_sums(digits: str) -> LuhnSums:
    """Running sums of the digits, for `has_valid_check_digit` (ISO/IEC 7812).

    There are two sequences: one doubles the digits at even places, the other those at odd places.
    """
    plain = list(map(int, digits))
    doubled = [2 * digit - 9 * (digit > 4) for digit in plain]
    return tuple(
        [0, *accumulate(doubled[k] if (k + odd) % 2 else plain[k] for k in range(len(plain)))]
        for odd in (0, 1)
    )


def has_valid_check_digit(sums: LuhnSums, begin: int, end: int) -> bool:
    """Whether the digits from `begin` up to `end`, exclusive, have a valid check digit (Luhn)."""
    running = sums[(end - 1) % 2]
    return (running[end] - running[begin]) % 10 == 0
