"""How a sentence quotes what a client sent, and how a sentence becomes the value of a header.

Source: D36, D38.
"""

from typing import Final

from sandbox_sim.domain.redaction import mask_long_numbers, redact_text
from sandbox_sim.domain.text_cache import cached_by_text

# The most characters of a quoted value, and of a sentence in a header.
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
    return f"'{_cut(printable_ascii(redact_text(value[:_EXAMINED])), MAX_QUOTED)}'"


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
    return _cut(printable_ascii(sentence), MAX_SENTENCE)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
