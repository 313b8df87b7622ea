"""Texts of others: masked before they are stored or shown, printable, quoted, and cached.

Source: D38, D36.

A card number has the first digits and the length of a brand (`values.cards`) and a valid check
digit. It is found in any decimal digits of Unicode, with blanks or dashes between them, and behind
the escapes of JSON and of URLs. Its first six and last four digits stay readable.

Almost no text has a secret, so each function first looks for what every secret has: a character,
and as many digits as a card number. That takes well under a microsecond for a request of the usual
size. A text with so many digits, such as a time in milliseconds, gets a second look: for the first
digits of a brand at the beginning of a group of digits.

Printable texts have no control characters, no U+2028 and U+2029, no characters without a picture
such as marks of the direction of writing, and no unpaired surrogates, which no UTF-8 can hold.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from sandbox_sim.values import cards
from sandbox_sim.values.json_text import compact, map_texts

T = TypeVar("T")


# Longer texts are not cached: they rarely repeat, and each takes the memory of many.
MAX_CACHED_CHARACTERS: Final = 512


def cached_by_text(maxsize: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Cache the results of a pure function for the `maxsize` most recent texts.

    Longer texts than `MAX_CACHED_CHARACTERS` are not cached, so a cache takes at most `maxsize`
    times some kilobytes.
    """

    def decorate(function: Callable[[str], T]) -> Callable[[str], T]:
        cached = lru_cache(maxsize)(function)

        @wraps(function)
        def call(text: str) -> T:
            return cached(text) if len(text) <= MAX_CACHED_CHARACTERS else function(text)

        return call

    return decorate


def closest_match(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one; None if no name is like it."""
    import difflib  # noqa: PLC0415 -- needed only for an error

    found = difflib.get_close_matches(name, known, n=1)
    return found[0] if found else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: `did you mean status?`, or the names there are."""
    names = list(known)
    match = closest_match(name, names)
    if match is not None:
        return f"did you mean {match}?"
    return f"there are {', '.join(names) or 'none'}"


def printable(line: str) -> str:
    r"""The line with escapes, such as `\x1b` and `\u2028`; a line feed is escaped, too."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


def printable_json(text: str) -> str:
    r"""JSON with the same meaning, in which strings have escapes, such as `\u001b`.

    Line feeds and tabs between its values stay; a carriage return becomes a line feed.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _json_escape(char) for char in text)


def printable_document(document: Any) -> Any:
    """A parsed JSON document with every text in it made `printable`, names too."""
    return map_texts(document, printable, printable)


def _json_escape(char: str) -> str:
    if char in "\r\n\t":  # in a string they are escaped already
        return "\t" if char == "\t" else "\n"
    return json.dumps(char)[1:-1]


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

_IGNORED_BYTES: Final = bytes(range(33)) + b"\x7f+-.\\bfnrt"

_LONG: Final = b"0" * cards.SHORTEST

# The beginning of a card number, which begins a group of digits as in `_card_digits`, or follows
# the zeros of a JSON number. Between the digits are characters of `_IGNORED_BYTES`. A pattern that
# begins with a set is found fastest.
_BETWEEN: Final = rf"[{re.escape(_IGNORED_BYTES.decode())}]*"

_FIRST_TWO: Final = "|".join(
    rf"(?<={first}){_BETWEEN}[{seconds}]" for first, seconds in cards.FIRST_TWO_DIGITS.items()
)

_MAY_BE_A_CARD: Final = re.compile(
    rf"[{''.join(cards.FIRST_TWO_DIGITS)}](?<![1-9].)(?:{_FIRST_TWO})"
    rf"(?:{_BETWEEN}[0-9]){{{cards.SHORTEST - 2}}}".encode(),
    re.DOTALL,
)

# The beginning of the card options, CRD and CRM. Beside them even a mistyped number is masked.
_CARD_OPTION: Final = b"CR"

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
        and (
            raw.translate(_ZEROS, _IGNORED_BYTES).find(_LONG) < 0
            or (raw.find(_CARD_OPTION) < 0 and _MAY_BE_A_CARD.search(raw) is None)
        )
    )


def redact_text(text: str) -> str:
    """The text with card numbers and URL passwords masked; the same text if there are none.

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

    def to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            repeated.extend(found)
        return found

    try:
        document = json.loads(text, object_pairs_hook=to_object)
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
    decoded = _ESCAPE.sub(_unescape, text)
    decoded = decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    redacted = _redact(decoded)
    return text if redacted == decoded else redacted


def _unescape(found: re.Match[str]) -> str:
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
        if cards.has_valid_check_digit(sums, begin, end):
            masked.update(range(begin + cards.FIRST_SHOWN, end - cards.LAST_SHOWN))
    return masked


# The maximum length of a quoted value, and of a sentence in a header.
MAX_QUOTED: Final = 60

MAX_SENTENCE: Final = 300

# Secrets are masked before a value is cut. A card number that begins among the characters shown
# ends before this many, so half of one is never shown.
_EXAMINED: Final = 1024

_CONTROL_CHARACTERS: Final = {code: f"\\x{code:02x}" for code in (*range(32), 127)}


def quoted(value: str) -> str:
    """A value in quotes: cut, secrets masked, and what is not printable ASCII escaped.

    The quotes show blanks at the ends, such as one that a form made of a `+`.
    """
    return f"'{_truncate(printable_ascii(redact_text(value[:_EXAMINED])), MAX_QUOTED)}'"


def quoted_card(value: str) -> str:
    """The value of a field for cards, quoted; the middle of any long number is masked."""
    return quoted(mask_long_numbers(value[:_EXAMINED]))


def printable_ascii(text: str) -> str:
    r"""The text with escapes, such as `\x0a` and `\u20ac`, for what is not printable ASCII."""
    if text.isascii() and text.isprintable():
        return text
    return text.encode("ascii", "backslashreplace").decode().translate(_CONTROL_CHARACTERS)


@cached_by_text(maxsize=512)
def header_value(sentence: str) -> str:
    """A sentence as the value of a header: printable ASCII of at most 300 characters."""
    return _truncate(printable_ascii(sentence), MAX_SENTENCE)


def _truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
