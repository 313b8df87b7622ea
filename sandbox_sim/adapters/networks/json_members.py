"""Reads the members of JSON answers, for adapters of networks that speak JSON."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from sandbox_sim.domain import money

# A number that stands in the place of a text is no longer; 1E+999999 has a million digits.
_MOST_DIGITS: Final = 40


def document_of(body: bytes) -> Mapping[str, Any]:
    """A JSON object with exact numbers; empty where the body is none."""
    try:
        document = money.read_json(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def text_of(value: object) -> str:
    """A text, or a whole number in the place of one; empty for anything else."""
    if isinstance(value, Decimal):
        is_short = value.adjusted() < _MOST_DIGITS
        return format(value, "f") if is_short and value == value.to_integral_value() else ""
    return value if isinstance(value, str) else ""
