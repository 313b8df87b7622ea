"""Writes JSON as the gateway sends it, and parses texts that may be JSON. Source: D28.

A `Decimal` is written as a number with all its digits; a float has seventeen at most. The parser
accepts only values that can be written as JSON again.
"""

import json
import math
from decimal import Decimal
from typing import Final

_COMPACT: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def compact(document: object) -> str:
    """A document as JSON without spaces; characters beyond ASCII are not escaped.

    A `Decimal` becomes an exact number: it must be finite.
    """
    try:
        return _COMPACT.encode(document)
    except TypeError:  # json writes no Decimal
        return _exact(document)


def _exact(document: object) -> str:
    """As `compact`, for a document with a `Decimal` in it."""
    if isinstance(document, Decimal):
        return plain_decimal(document)
    if isinstance(document, dict):
        members = [f"{_COMPACT.encode(name)}:{_exact(each)}" for name, each in document.items()]
        return f"{{{','.join(members)}}}"
    if isinstance(document, list | tuple):
        return f"[{','.join(map(_exact, document))}]"
    return _COMPACT.encode(document)


def plain_decimal(amount: Decimal) -> str:
    """The shortest plain decimal: 10.50 gives 10.5, 1E+4 gives 10000 (D28)."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_json(text: str, default: object) -> object:
    """The parsed text; `default` where it is not JSON, or has NaN or a number that is too large."""
    try:
        document: object = json.loads(
            text, parse_constant=_reject_constant, parse_float=_finite_float
        )
    except (ValueError, RecursionError):
        return default
    return document


def _reject_constant(constant: str) -> object:
    raise ValueError(constant)


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value
