"""Exact amounts: `Decimal` from the text of a JSON number to the network. Source: D5, D39.

A float would lose the last digit of 10000000000000001. `json_text.compact` writes every digit.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from sandbox_sim.values.peer_input import read_json

# Every currency that the interface names has two decimals. So have the other currencies that a
# network may be configured with, except for these.
_DECIMALS: Final[Mapping[str, int]] = {"XOF": 0, "XAF": 0, "UGX": 0, "RWF": 0, "GNF": 0}

_USUAL_DECIMALS: Final = 2

# More digits than this before the point are not an amount of money; a bound keeps the text short.
MAX_WHOLE_DIGITS: Final = 18


def decimals_of(currency: str) -> int:
    """How many decimals the currency has."""
    return _DECIMALS.get(currency, _USUAL_DECIMALS)


def problem_of(amount: Decimal, currency: str) -> str | None:
    """What is wrong with an amount in this currency, in words; None where nothing is."""
    if not amount.is_finite() or amount <= 0:
        return "must be a number above 0"
    # The exponent is checked before the number is written out: 1E+999999 has a million digits.
    if amount.adjusted() >= MAX_WHOLE_DIGITS:
        return f"must have at most {MAX_WHOLE_DIGITS} digits before the decimal point"
    decimals = decimals_of(currency)
    _sign, digits, exponent = amount.as_tuple()
    excess = -int(exponent) - decimals
    # Zeros at the end say nothing, so 10.500 has one decimal.
    if any(digits[max(len(digits) - excess, 0) :]):
        return f"must have at most {decimals} decimals, as {currency} has"
    return None


def exact_amount(raw: bytes) -> Decimal | None:
    """The number in the field `amount` of a JSON object, to the last digit; None without one.

    Raises:
        ValueError: the body is not JSON, or exceeds a bound of `read_json`; the text says which.
    """
    document = read_json(raw)
    amount = document.get("amount") if isinstance(document, dict) else None
    return amount if isinstance(amount, Decimal) else None
