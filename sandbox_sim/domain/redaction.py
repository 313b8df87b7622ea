"""Redaction: masks card numbers and the passwords in URLs before anything is stored or shown.

Source: D38. A card number has the first digits and the length of a brand (`domain.payments.cards`)
and a valid check digit. It is found in any decimal digits of Unicode, with blanks or dashes between
them, and behind the escapes of JSON and of URLs. Its first six and last four digits stay readable.

Almost no text has a secret, so each function first looks for a character that every secret has.
That takes well under a microsecond for a request of the usual size.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import unquote

from sandbox_sim.domain.json_text import compact
from sandbox_sim.domain.payments import cards

# Characters that may separate the digits of a number: blanks, control characters, dashes,
# characters without width, and `+`, which is a blank in the query of a URL.
_SEPARATORS: Final = (
    r"[\s\x00-\x1f\x7f+\-\u00ad\u058a\u05be\u1806\u200b-\u200f\u2010-\u2015\u2060\u2212"
    r"\u2e3a\u2e3b\u301c\ufe31\ufe58\ufe63\ufeff\uff0d]{0,8}"
)
_LONG_NUMBER: Final = re.compile(rf"\d(?:{_SEPARATORS}\d){{{cards.SHORTEST - 1},}}")
_NUMBER_AT_THE_END: Final = re.compile(rf"(?:\d{_SEPARATORS})+\Z")
# User name and password of a URL. They end at the last @ before the path.
_USERINFO: Final = re.compile(r"(?<=://)[^/?#\s]*@")
_EXPONENT: Final = re.compile(r"\.[0-9]+[eE]")
_ESCAPE: Final = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

# For a fast search, digits become zeros and other bytes a letter. Characters that may separate
# digits are removed: also those of JSON escapes, and the point of a number such as
# 4.111111111111111e15.
_ZEROS: Final = bytes(48 if 48 <= byte <= 57 else 120 for byte in range(256))
_LEFT_OUT: Final = bytes(range(33)) + b"\x7f+-.\\bfnrt"
_LONG: Final = b"0" * cards.SHORTEST
# Numbers, because `b"@" in raw` raises and drops a TypeError before it searches (Python 3.11).
_AT, _PERCENT, _BACKSLASH = b"@%\\"
# A body is cut to its limit only after redaction of this many bytes more, so that no number is cut
# in two.
_MARGIN: Final = 2048


Redact = Callable[[Any], Any]


def needs_no_masking(raw: bytes) -> bool:
    """Whether a text certainly has no secret; False where it must be examined."""
    return (
        raw.isascii()
        and _AT not in raw
        and _PERCENT not in raw
        and (_BACKSLASH not in raw or raw.find(b"\\u") < 0)
        and raw.translate(_ZEROS, _LEFT_OUT).find(_LONG) < 0
    )


def redact_text(text: str) -> str:
    """The text with card numbers and URL passwords masked; the same text where there are none.

    Where a secret is hidden behind percent-escapes, the result has all of them decoded.
    """
    if len(text) < cards.SHORTEST and "@" not in text and "%" not in text:
        return text
    return text if text.isascii() and needs_no_masking(text.encode()) else _redact(text)


def redact_document(document: Any) -> Any:
    """Parsed JSON with its names, strings and numbers redacted; a masked number is a string."""
    if isinstance(document, str):
        return redact_text(document)
    if isinstance(document, dict):
        return {redact_text(name): redact_document(each) for name, each in document.items()}
    if isinstance(document, list):
        return [redact_document(each) for each in document]
    if isinstance(document, int | float) and not isinstance(document, bool):
        return _redact_number(document)
    return document


def redact_json(text: str) -> str:
    """JSON with its values redacted, or any other text redacted as text.

    The JSON is written again only where something is masked.
    """
    return text if text.isascii() and needs_no_masking(text.encode()) else _redact_json(text)


def redact_body(raw: bytes, limit: int, redact: Redact = redact_document) -> bytes:
    """The first `limit` bytes of a body, redacted as by `redact_json`.

    redact: redacts the document where the body is JSON and not longer than `limit`.
    """
    if needs_no_masking(raw):
        return raw[:limit]
    if len(raw) <= limit:
        text = _redact_json(raw.decode("utf-8", "replace"), redact)
        return text.encode("utf-8", "replace")[:limit]
    beginning = raw[: limit + _MARGIN].decode("utf-8", "replace")
    text = _redact_escaped(beginning)
    if text != beginning:
        # The text may be shorter now, so that its end could have half a number from the margin.
        text = _NUMBER_AT_THE_END.sub("", text)
    return text.encode("utf-8", "replace")[:limit]


def mask_long_numbers(text: str) -> str:
    """A text that is known to be a card number: masks every long number, even an invalid one."""
    return _LONG_NUMBER.sub(lambda found: _mask(found[0], _all_but_ends), text)


def _redact_json(text: str, redact: Redact = redact_document) -> str:
    if redact is redact_document and _has_no_escapes(text) and _redact(text) == text:
        return text
    repeated: list[str] = []

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            repeated.extend(found)
        return found

    try:
        document = json.loads(text, object_pairs_hook=object_of)
        redacted = redact(document)
    except (ValueError, RecursionError):
        return _redact_escaped(text)
    # Where a field name is repeated, the document has the last one and the text has all.
    if repeated or redacted != document or _redact(text) != text:
        return compact(redacted).encode("utf-8", "replace").decode()
    return text


def _has_no_escapes(text: str) -> bool:
    """Whether the values of a JSON text appear literally: no escapes and no exponents."""
    return "\\" not in text and _EXPONENT.search(text) is None


def _redact(text: str) -> str:
    text = _redact_decoded(text)
    if "%" in text:
        decoded = unquote(text)
        redacted = _redact_decoded(decoded)
        if redacted != decoded:
            return redacted
    return text


def _redact_decoded(text: str) -> str:
    if "@" in text:
        text = _USERINFO.sub("***@", text)
    return _LONG_NUMBER.sub(lambda found: _mask(found[0], _card_digits), text)


def _redact_escaped(text: str) -> str:
    """Redacts text that may be broken JSON; decodes its escapes where they hide a secret."""
    text = _redact(text)
    if "\\" not in text:
        return text
    decoded = _ESCAPE.sub(_unescaped, text)
    decoded = decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    redacted = _redact(decoded)
    return text if redacted == decoded else redacted


def _unescaped(found: re.Match[str]) -> str:
    code, letter = found.groups()
    return chr(int(code, 16)) if code else _ESCAPED.get(letter, letter)


def _redact_number(number: float) -> float | str:
    if not cards.SMALLEST <= abs(number) < cards.TOO_LARGE:
        return number
    for text in (str(number), str(int(number))):
        redacted = redact_text(text)
        if redacted != text:
            return redacted
    return number


def _mask(text: str, select: Callable[[str, Sequence[int]], set[int]]) -> str:
    """A run of digits with some of them masked.

    select: gets the digits and the indexes where a group of digits begins, with the end as the last
    one; returns the indexes to mask.
    """
    places = [place for place, char in enumerate(text) if char.isdecimal()]
    digits = "".join(str(int(text[place])) for place in places)
    group_starts = [k for k in range(len(places)) if k == 0 or places[k] != places[k - 1] + 1]
    masked = select(digits, [*group_starts, len(digits)])
    if not masked:
        return text
    chars = list(text)
    for k in masked:
        chars[places[k]] = "*"
    return "".join(chars)


def _all_but_ends(digits: str, _borders: Sequence[int]) -> set[int]:
    return set(range(cards.FIRST_SHOWN, len(digits) - cards.LAST_SHOWN))


def _card_digits(digits: str, borders: Sequence[int]) -> set[int]:
    """The middle of each card number that begins and ends at the border of a group of digits."""
    ends, masked = set(borders), set[int]()
    candidates = [
        (begin, begin + length)
        for begin in borders[:-1]
        for length in cards.lengths(digits[begin : begin + cards.FIRST_SHOWN])
        if begin + length in ends
    ]
    sums = cards.luhn_sums(digits) if candidates else ()
    for begin, end in candidates:
        if cards.is_checked(sums, begin, end):
            masked.update(range(begin + cards.FIRST_SHOWN, end - cards.LAST_SHOWN))
    return masked
