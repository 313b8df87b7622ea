"""Records as text: tables with one line a record, and outlines with one line a field."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final

import click

from sandbox_sim.values.redaction import printable

# A table cuts longer texts; `show` prints them whole.
_SHOWN_CHARACTERS: Final = 100
_COLOURS: Final = {
    **dict.fromkeys(("000 successful", "delivered", "SENT", "valid"), "green"),
    **dict.fromkeys(("002 pending", "pending", "ACKNOWLEDGED", "missing"), "yellow"),
    **dict.fromkeys(("retrying", "dropped"), "yellow"),
    **dict.fromkeys(("001 failed", "003 cancelled", "failed", "REFUNDED", "invalid"), "red"),
}
_GAP: Final = "  "

Shown = Mapping[str, Any]
# For each heading of a table the function that returns the cell of a record.
Columns = Mapping[str, Callable[[Shown], object]]


def fields(*headings: str) -> Columns:
    """Columns from `heading=field`, or from the field alone if it is also the heading."""
    pairs = (text.partition("=") for text in headings)
    return {heading: itemgetter(name or heading) for heading, _, name in pairs}


def listing(
    records: Sequence[Shown],
    words: str,
    columns: Columns,
    optional: Columns = MappingProxyType({}),
    *,
    shorten: bool = True,
) -> Iterator[str]:
    """The records as a table, or the line `no …`.

    optional: columns that are left out where every cell is None.
    """
    if not records:
        yield f"no {words}"
        return
    used = {
        heading: cell
        for heading, cell in optional.items()
        if any(cell(record) is not None for record in records)
    }
    columns = {**columns, **used}
    rows = [[cell(record) for cell in columns.values()] for record in records]
    yield from table(list(columns), rows, shorten=shorten)


def more(document: Shown) -> Iterator[str]:
    """The line below a page that is not the last one."""
    if document["next"] is not None:
        yield f"more: --after {document['next']}"


def deleted(document: Shown) -> Iterator[str]:
    """The line that says how many records were deleted."""
    yield f"{document['deleted']} deleted"


def table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], *, shorten: bool = True
) -> Iterator[str]:
    """A line of headings and a line for each row, with aligned columns."""
    cells = [[shown(value) for value in row] for row in rows]
    if shorten:
        cells = [[shortened(cell) for cell in row] for row in cells]
    columns = zip(headings, *cells, strict=True)
    widths = [*map(_width, columns)]
    widths[-1] = 0
    yield click.style(_line(headings, widths), bold=True)
    for row in cells:
        yield _coloured(row, widths)


def _width(cells: Iterable[str]) -> int:
    """The width of the longest cell; one that is longer than a table shows makes none wider."""
    return max((length for length in map(len, cells) if length <= _SHOWN_CHARACTERS), default=0)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return _GAP.join(padded).rstrip()


def _coloured(cells: Sequence[str], widths: Sequence[int]) -> str:
    """The line of a record; a word for a state has a colour."""
    padded = [
        status_word(cell) + " " * (width - len(cell))
        for cell, width in zip(cells, widths, strict=True)
    ]
    return _GAP.join(padded).rstrip()


def status_word(word: str) -> str:
    """A word for a state in its colour; any other text as it is."""
    return click.style(word, fg=_COLOURS[word]) if word in _COLOURS else word


def outline(document: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Every field on a line of its own; the fields inside a field are indented below it."""
    width = _width(document)
    for name, value in document.items():
        inside = list(_inside(value, indent + _GAP))
        if inside:
            yield f"{indent}{printable(name)}"
            yield from inside
        else:
            yield f"{indent}{printable(name):<{width}}{_GAP}{shown(value)}".rstrip()


def _inside(value: object, indent: str) -> Iterator[str]:
    """The lines of a value that has several; none for a plain value."""
    if isinstance(value, Mapping) and value:
        yield from outline(value, indent)
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        # The answer of a receiver may be long, so it is the last column.
        names = sorted(dict.fromkeys(name for each in value for name in each), key=_is_long)
        rows = [[each.get(name) for name in names] for each in value]
        yield from (indent + line for line in table(names, rows, shorten=False))
    elif isinstance(value, list):
        yield from (indent + shown(each) for each in value)


def _is_long(name: str) -> bool:
    return name in {"response_body", "body", "message"}


def shown(value: object) -> str:
    """A value in one line; `-` for None and for empty values."""
    if value is None or value in ([], {}):
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return printable(json.dumps(value, ensure_ascii=False))
    return printable(str(value))


def shortened(text: str) -> str:
    """The text, cut if it is long."""
    return f"{text[:_SHOWN_CHARACTERS]}…" if len(text) > _SHOWN_CHARACTERS else text
