"""How long a text is on the air: encoding, pages and characters of an SMS. Source: D23.

GSM 03.38 packs seven-bit characters (those of its extension table take two, an escape first):
160 fit one page, 153 each of several. Anything else goes as UTF-16 code units: 70, and 67.
An escape pair or a surrogate pair never straddles a page border, so a page may stay one short.
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
    """The size of a text that is not empty."""
    if _GSM.issuperset(text):
        widths = [2 if char in GSM_EXTENSION else 1 for char in text]
        return Size("GSM", len(text), _pages(widths, alone=160, joined=153))
    widths = [2 if ord(char) > 0xFFFF else 1 for char in text]
    return Size("UNICODE", len(text), _pages(widths, alone=70, joined=67))


def _pages(widths: Iterable[int], *, alone: int, joined: int) -> int:
    """How many pages characters of these widths fill, none of them split."""
    total = pages = used = 0
    for width in widths:
        total += width
        if pages == 0 or used + width > joined:
            pages += 1
            used = 0
        used += width
    return 1 if total <= alone else pages
