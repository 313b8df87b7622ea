"""Aligned lines for the messages of a failed test."""

from collections.abc import Iterator, Sequence
from typing import Final

from sandbox_sim.domain.redaction import redact_text

_LONGEST: Final = 60


def aligned(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """A line of headings and one for each row. Long cells are cut, except in the last column."""
    lines = [
        list(headings),
        *([_short(_line(cell)) for cell in row[:-1]] + [_line(row[-1])] for row in rows),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "  " + "  ".join(padded).rstrip()


def _line(value: object) -> str:
    return "-" if value is None else redact_text(" ".join(str(value).split()))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
