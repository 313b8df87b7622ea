"""Reads what peers send: answers and notifications of networks, and recordings of them. D39.

Peers are not trusted, so everything is bounded before it is used. A document is refused where it is
longer or nested deeper than any network needs, or has a number with more digits or a larger
exponent, in either direction, than a double has: written out, 0e-1000000000 takes a gigabyte. It is
refused too where an object gives one name two values, because readers differ in which they take. In
texts, what no database stores (NUL and unpaired surrogates) becomes U+FFFD.

Of a text, less is stored: an identifier is in an index, a reason in a list.
"""

import json
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from sandbox_sim.values.json_text import refuse_constant

MAX_CHARACTERS: Final = 4 * 1024 * 1024

MAX_DEPTH: Final = 64

# Of one number as it is written; a double in its shortest form has 24.
MAX_NUMBER_CHARACTERS: Final = 100

# A double goes from 5e-324 to 1.8e308.
MAX_EXPONENT: Final = 400

# A number in the place of an identifier has at most this many digits.
_MAX_ID_DIGITS: Final = 40

# The indexes of Postgres take 2,704 bytes; a character has at most four.
MAX_ID_CHARACTERS: Final = 255

MAX_REASON_CHARACTERS: Final = 500

MAX_ADDRESS_CHARACTERS: Final = 2048


_REPLACEMENT: Final = "\ufffd"

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")

_LINE_BREAKS: Final = re.compile("[\t-\r\x85\u2028\u2029]+")

_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

_ELLIPSIS: Final = "…"

_TOO_DEEP: Final = f"it is nested more than {MAX_DEPTH} deep"


def read_json(text: str | bytes) -> Any:
    """A JSON document with every number as an exact `Decimal`.

    Raises:
        ValueError: the text is not JSON, has NaN or Infinity in it, exceeds a bound, or gives one
            name two values.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"it is longer than {MAX_CHARACTERS:,} characters")
    try:
        document = json.loads(
            text,
            object_pairs_hook=_unambiguous_object,
            parse_float=_parse_number,
            parse_int=_parse_number,
            parse_constant=refuse_constant,
        )
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return _make_storable(document, MAX_DEPTH)


def _unambiguous_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs) and any(found[name] != value for name, value in pairs):
        raise ValueError("an object gives one name two values")
    return found


def document_of(body: bytes) -> Mapping[str, Any]:
    """A JSON object with exact numbers; empty for any other body."""
    try:
        document = read_json(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def text_of(value: object) -> str:
    """A text, or a whole number in the place of one; empty for anything else."""
    if isinstance(value, Decimal):
        is_whole = value.adjusted() < _MAX_ID_DIGITS and value == value.to_integral_value()
        return str(int(value)) if is_whole else ""
    return value if isinstance(value, str) else ""


def amount_of(value: object) -> Decimal | None:
    """An amount from JSON that `read_json` read, a number or a text; None for anything else."""
    if isinstance(value, Decimal):
        return value
    try:
        return _parse_number(value) if isinstance(value, str) else None
    except ValueError:
        return None


def clean_identifier(text: str) -> str:
    """An identifier as it is stored and searched for; a changed one matches no other."""
    return _clean(text, MAX_ID_CHARACTERS)


def clean_reason(text: str) -> str:
    """A text for people as it is stored: in one line."""
    return _clean(_LINE_BREAKS.sub(" ", text), MAX_REASON_CHARACTERS)


def clean_address(text: str) -> str:
    """An address as it is stored; a longer one is cut, so it does not work."""
    return _clean(text, MAX_ADDRESS_CHARACTERS)


def storable(text: str) -> str:
    """The text with U+FFFD for what no database stores."""
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def _clean(text: str, limit: int) -> str:
    text = text if len(text) <= limit else text[: limit - len(_ELLIPSIS)] + _ELLIPSIS
    return _CONTROLS.sub(_REPLACEMENT, text)


def _parse_number(text: str) -> Decimal:
    """Raises `ValueError` for a number that is not finite or exceeds a bound."""
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise ValueError(f"a number is longer than {MAX_NUMBER_CHARACTERS} characters")
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError("it is not a number, or its exponent is too large") from None
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > MAX_EXPONENT:
        raise ValueError(f"a number has an exponent beyond {MAX_EXPONENT}")
    return number


def _make_storable(value: Any, depth: int) -> Any:
    """The document with storable texts. Raises `ValueError` where it is nested too deeply."""
    match value:
        case str():
            return storable(value)
        case dict() | list() if depth == 0:
            raise ValueError(_TOO_DEEP)
        case dict():
            return {storable(name): _make_storable(each, depth - 1) for name, each in value.items()}
        case list():
            return [_make_storable(each, depth - 1) for each in value]
        case _:
            return value
