"""Writes JSON as the gateway sends it, and parses texts that may be JSON. Source: D28.

A `Decimal` is written as a number with all its digits; a float has seventeen at most. The parser
accepts only values that can be written as JSON again. A `viewer` makes the view of a record from
the fields that the view names.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, Final, Protocol, TypeVar, cast

from sandbox_sim.values.timestamps import iso

V_co = TypeVar("V_co", covariant=True)

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def compact(document: object) -> str:
    """A document as JSON without spaces; characters beyond ASCII are not escaped.

    A `Decimal` becomes an exact number: it must be finite.
    """
    try:
        return _encode(document)
    except TypeError:  # json writes no Decimal
        return _compact_exactly(document)


def _compact_exactly(document: object) -> str:
    """As `compact`, for a document with a `Decimal` in it."""
    if isinstance(document, Decimal):
        return plain_decimal(document)
    if isinstance(document, dict):
        members = [f"{_encode(name)}:{_compact_exactly(each)}" for name, each in document.items()]
        return f"{{{','.join(members)}}}"
    if isinstance(document, list | tuple):
        return f"[{','.join(map(_compact_exactly, document))}]"
    return _encode(document)


def plain_decimal(amount: Decimal) -> str:
    """The shortest plain decimal: 10.50 gives 10.5, 1E+4 gives 10000 (D28)."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def map_texts(
    document: Any, change: Callable[[str], Any], rename: Callable[[str], str] = str
) -> Any:
    """A parsed document with every text in it changed, and the names of its members renamed."""
    match document:
        case str():
            return change(document)
        case dict():
            return {
                rename(name): map_texts(each, change, rename) for name, each in document.items()
            }
        case list():
            return [map_texts(each, change, rename) for each in document]
    return document


def parse_json(text: str, default: object) -> object:
    """The parsed text; `default` if it is not JSON, or has NaN or a number that is too large."""
    try:
        document: object = json.loads(
            text, parse_constant=refuse_constant, parse_float=_finite_float
        )
    except (ValueError, RecursionError):
        return default
    return document


def refuse_constant(constant: str) -> object:
    """Raise `ValueError`, for `NaN` and `Infinity` in a JSON text."""
    raise ValueError(f"{constant} is not a JSON number")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


class Viewer(Protocol[V_co]):
    """Shows records of one kind. given: the fields that the record does not have as they are."""

    def __call__(self, record: object, /, **given: object) -> V_co:
        """The view of a record."""


def viewer(view: Callable[..., V_co]) -> Viewer[V_co]:
    """Makes a `TypedDict` of a record: each field that it names, as JSON has it."""
    names = tuple(view.__annotations__)

    def viewed(record: object, /, **given: object) -> V_co:
        shown: dict[str, Any] = dict.fromkeys(names)
        shown.update(given)
        for name in [each for each in names if each not in given] if given else names:
            value = getattr(record, name)
            kind = value.__class__
            shown[name] = value if kind in _PLAIN else _converter(kind)(value)
        return cast("V_co", shown)

    return viewed


_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


@cache
def _converter(kind: type) -> Callable[..., object]:
    """What makes values of a class fit for JSON."""
    converters: Sequence[tuple[type, Callable[..., object]]] = (
        (Enum, attrgetter("value")),
        (datetime, iso),
        (Decimal, "{:f}".format),
        (Mapping, dict),
        (tuple, list),
        (object, lambda value: value),
    )
    return next(convert for of, convert in converters if issubclass(kind, of))
