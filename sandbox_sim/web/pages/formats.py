"""How the pages write times, amounts, states and documents: the filters of the templates."""

import json
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any, Final

from sandbox_sim.web.pages.texts import Texts

# The colour of a state; the word beside it says the same.
_TONES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("000", "202", "good", "delivered", "SENT", "valid"), "good"),
        **dict.fromkeys(("002", "pending", "ACKNOWLEDGED", "QUEUED"), "wait"),
        **dict.fromkeys(("dropped", "REFUNDED", "missing", "003", "info"), "info"),
    }
)


def tone(state: str) -> str:
    """The class of a badge: good, wait, info, or bad for all that was refused or failed."""
    return _TONES.get(state, "bad")


def status_words(text: Texts, status: str) -> str:
    """A status code with its word, such as `000 successful`."""
    return f"{status} {text(f'status.{status}')}"


def operation_name(text: Texts, operation: str | None) -> str:
    """The name of an operation; `Request` for what names none."""
    return text(f"operation.{operation or 'none'}")


def clock_time(iso: str | None) -> str:
    """The time of day of an ISO 8601 time, to the second."""
    return (iso or "")[11:19]


def exact_time(iso: str | None) -> str:
    """The time of day of an ISO 8601 time, to the millisecond."""
    return (iso or "")[11:23].rstrip("Z")


def money(amount: object) -> str:
    """An amount with two decimals or more, and with commas between thousands."""
    try:
        number = Decimal(str(amount))
        exponent = number.as_tuple().exponent
        places = max(2, -exponent) if isinstance(exponent, int) else 2
        return f"{number:,.{min(places, 20)}f}" if abs(number) < 10**15 else str(amount)[:40]
    except (InvalidOperation, ValueError):
        return str(amount)[:40]


def spaced(number: str) -> str:
    """A phone number as people read it: 0244 000 001."""
    if len(number) == 10 and number.isascii() and number.isdigit():
        return f"{number[:4]} {number[4:7]} {number[7:]}"
    return number


def as_json(document: object) -> str:
    """A document as indented JSON; a text as it is."""
    if isinstance(document, str):
        return document
    return json.dumps(document, indent=2, ensure_ascii=False)


def compact_json(document: object) -> str:
    """A document as JSON in one line."""
    return json.dumps(document, ensure_ascii=False)


FILTERS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "tone": tone,
        "clock_time": clock_time,
        "exact_time": exact_time,
        "money": money,
        "spaced": spaced,
        "as_json": as_json,
        "compact_json": compact_json,
    }
)
