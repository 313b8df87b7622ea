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


def said(text: str, otherwise: object) -> object:
    """What a JSON text says; `otherwise` for any other text, and for NaN and numbers too large."""
    try:
        document: object = json.loads(text, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError):
        return otherwise
    return document


def _refused(constant: str) -> object:
    raise ValueError(constant)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value
