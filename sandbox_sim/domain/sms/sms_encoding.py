"""The size of an SMS text: its encoding, its pages and its characters. Source: D23.

GSM 03.38 has characters of seven bits; those of its extension table take two, an escape first. A
message of one page holds 160 of them, a page of a longer message 153. Any other text is sent as
UTF-16 code units: 70 in one page, 67 in a page of several. An escape pair or a surrogate pair is
never split between two pages, so a page may hold one unit less.
"""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

GSM_BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
GSM_EXTENSION: Final = frozenset("\f^{}\\[~]|€")
_GSM: Final = GSM_BASIC | GSM_EXTENSION


class Size(NamedTuple):
    """The size of one text; `char_count` counts characters as the sender typed them."""

    encoding: Literal["GSM", "UNICODE"]
    char_count: int
    page_count: int


def measure(text: str) -> Size:
    """The size of a text, which must not be empty."""
    if _GSM.issuperset(text):
        widths = [2 if char in GSM_EXTENSION else 1 for char in text]
        return Size("GSM", len(text), _pages(widths, single_page=160, several_pages=153))
    widths = [2 if ord(char) > 0xFFFF else 1 for char in text]
    return Size("UNICODE", len(text), _pages(widths, single_page=70, several_pages=67))


def _pages(widths: Iterable[int], *, single_page: int, several_pages: int) -> int:
    """How many pages characters of these widths need when none of them is split."""
    total = pages = used = 0
    for width in widths:
        total += width
        if pages == 0 or used + width > several_pages:
            pages += 1
            used = 0
        used += width
    return 1 if total <= single_page else pages
