"""JSON as the gateway writes it, and bodies that may be JSON.

Those are read only where what they say can be written as JSON again.
"""

import json
import math
from typing import Final

_COMPACT: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def compact(document: object) -> str:
    """A document as JSON without spaces, and with letters as they are."""
    return _COMPACT.encode(document)


def parse_json(text: str, default: object) -> object:
    """What a JSON text says; `otherwise` for any other text, and for NaN and numbers too large."""
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
