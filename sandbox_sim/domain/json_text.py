"""Writes JSON as the gateway sends it, and parses texts that may be JSON.

The parser accepts only values that can be written as JSON again.
"""

import json
import math
from typing import Final

_COMPACT: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def compact(document: object) -> str:
    """A document as JSON without spaces; characters beyond ASCII are not escaped."""
    return _COMPACT.encode(document)


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
