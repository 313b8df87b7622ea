"""An SMS text: its encoding, its pages, its characters and its octets. Source: D23.

GSM 03.38 has characters of seven bits; those of its extension table take two, an escape first. A
message of one page holds 160 of them, a page of a longer message 153. Any other text is sent as
UTF-16 code units: 70 in one page, 67 in a page of several. An escape pair or a surrogate pair is
never split between two pages, so a page may hold one unit less.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

_ESCAPE: Final = 0x1B

# In the order of GSM 03.38; the escape has its place between the two.
_GSM_TABLE: Final = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ"
    "\x1bÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)

GSM_BASIC: Final = frozenset(_GSM_TABLE) - {chr(_ESCAPE)}

_EXTENSION_SEPTETS: Final = {
    "\f": 0x0A,
    "^": 0x14,
    "{": 0x28,
    "}": 0x29,
    "\\": 0x2F,
    "[": 0x3C,
    "~": 0x3D,
    "]": 0x3E,
    "|": 0x40,
    "€": 0x65,
}

GSM_EXTENSION: Final = frozenset(_EXTENSION_SEPTETS)

_GSM: Final = GSM_BASIC | GSM_EXTENSION

_GSM_OCTETS: Final = {
    **{char: bytes([septet]) for septet, char in enumerate(_GSM_TABLE)},
    **{char: bytes([_ESCAPE, septet]) for char, septet in _EXTENSION_SEPTETS.items()},
}


class Size(NamedTuple):
    """The size of one text; `char_count` counts characters as the sender typed them."""

    encoding: Literal["GSM", "UNICODE"]
    char_count: int
    page_count: int


def measure(text: str) -> Size:
    """The size of a text, which must not be empty."""
    encoding, starts = _layout(text)
    return Size(encoding, len(text), len(starts))


def pages(text: str) -> Sequence[str]:
    """The text of each page, in order: as many pages as `measure` counts."""
    _, starts = _layout(text)
    return [text[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


def octets(text: str, encoding: Literal["GSM", "UNICODE"]) -> bytes:
    """The text in octets: one septet of GSM 03.38 in each, or UTF-16 with the high octet first.

    A surrogate without its other half is kept.
    """
    if encoding == "GSM":
        return b"".join(map(_GSM_OCTETS.__getitem__, text))
    return text.encode("utf-16-be", "surrogatepass")


def _layout(text: str) -> tuple[Literal["GSM", "UNICODE"], Sequence[int]]:
    """The encoding of a text, and where each of its pages begins."""
    if _GSM.issuperset(text):
        widths = [2 if char in GSM_EXTENSION else 1 for char in text]
        return "GSM", _page_starts(widths, single_page=160, several_pages=153)
    widths = [2 if ord(char) > 0xFFFF else 1 for char in text]
    return "UNICODE", _page_starts(widths, single_page=70, several_pages=67)


def _page_starts(widths: Sequence[int], *, single_page: int, several_pages: int) -> Sequence[int]:
    """At which character each page begins; no character is split. widths: of the characters."""
    if sum(widths) <= single_page:
        return [0]
    starts, used = [0], 0
    for index, width in enumerate(widths):
        if used + width > several_pages:
            starts.append(index)
            used = 0
        used += width
    return starts
