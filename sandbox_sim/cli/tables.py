"""Records as text: tables with a line for each record, outlines with a line for each field.

A transaction is shown with its attempts at a network, who decided it, and what to do next.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final

import click

from sandbox_sim.records.transactions import status_words
from sandbox_sim.values.redaction import printable

# A table cuts longer cells; `show` prints them in full.
_MAX_CELL_LENGTH: Final = 100
_COLOURS: Final = {
    **dict.fromkeys(("000 successful", "delivered", "SENT", "valid"), "green"),
    **dict.fromkeys(("002 pending", "pending", "ACKNOWLEDGED", "missing"), "yellow"),
    **dict.fromkeys(("retrying", "dropped"), "yellow"),
    **dict.fromkeys(("001 failed", "003 cancelled", "failed", "REFUNDED", "invalid"), "red"),
}
_INDENT: Final = "  "
_LONG_FIELDS: Final = frozenset({"response_body", "body", "message"})

Json = Mapping[str, Any]
# From each heading of a table to the function that returns the cell for a record.
Columns = Mapping[str, Callable[[Json], object]]


def fields(*headings: str) -> Columns:
    """Columns from texts `heading=field`, or `field` if it is also the heading."""
    pairs = (text.partition("=") for text in headings)
    return {heading: itemgetter(name or heading) for heading, _, name in pairs}


def listing(
    records: Sequence[Json],
    words: str,
    columns: Columns,
    optional: Columns = MappingProxyType({}),
    *,
    shorten: bool = True,
) -> Iterator[str]:
    """The records as a table, or the line `no …`.

    optional: columns that are left out if every cell is None.
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


def next_page_line(document: Json) -> Iterator[str]:
    """The line that says how to get the next page; none below the last page."""
    if document["next"] is not None:
        yield f"more: --after {document['next']}"


def deleted_line(document: Json) -> Iterator[str]:
    """The line that says how many records were deleted."""
    yield f"{document['deleted']} deleted"


def table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], *, shorten: bool = True
) -> Iterator[str]:
    """The lines of a table with headings and aligned columns."""
    cells = [[format_value(value) for value in row] for row in rows]
    if shorten:
        cells = [[shorten_cell(cell) for cell in row] for row in cells]
    columns = zip(headings, *cells, strict=True)
    widths = [*map(_width, columns)]
    widths[-1] = 0
    yield click.style(_row(headings, widths), bold=True)
    for row in cells:
        yield _row(row, widths, coloured_status)


def _width(cells: Iterable[str]) -> int:
    """The width of a column; cells longer than `_MAX_CELL_LENGTH` do not count."""
    return max((length for length in map(len, cells) if length <= _MAX_CELL_LENGTH), default=0)


def _row(cells: Sequence[str], widths: Sequence[int], style: Callable[[str], str] = str) -> str:
    """The line of a row. style: adds the colour of a cell, which takes no width."""
    padded = [
        style(cell) + " " * (width - len(cell)) for cell, width in zip(cells, widths, strict=True)
    ]
    return _INDENT.join(padded).rstrip()


def coloured_status(word: str) -> str:
    """A state in its colour; any other text unchanged."""
    return click.style(word, fg=_COLOURS[word]) if word in _COLOURS else word


def outline(document: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """A line for each field; the fields inside a field are indented below it."""
    width = _width(document)
    for name, value in document.items():
        nested = list(_nested_lines(value, indent + _INDENT))
        if nested:
            yield f"{indent}{printable(name)}"
            yield from nested
        else:
            yield f"{indent}{printable(name):<{width}}{_INDENT}{format_value(value)}".rstrip()


def _nested_lines(value: object, indent: str) -> Iterator[str]:
    """The lines of an object or a list; none for a plain value."""
    if isinstance(value, Mapping) and value:
        yield from outline(value, indent)
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        # Long texts, such as the answer of a receiver, are in the last columns.
        names = sorted(
            dict.fromkeys(name for each in value for name in each), key=_LONG_FIELDS.__contains__
        )
        rows = [[each.get(name) for name in names] for each in value]
        yield from (indent + line for line in table(names, rows, shorten=False))
    elif isinstance(value, list):
        yield from (indent + format_value(each) for each in value)


def format_value(value: object) -> str:
    """A value as one line; `-` for None and empty values."""
    if value is None or value in ([], {}):
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return printable(json.dumps(value, ensure_ascii=False))
    return printable(str(value))


def shorten_cell(text: str) -> str:
    """The text, cut if it is long."""
    return f"{text[:_MAX_CELL_LENGTH]}…" if len(text) > _MAX_CELL_LENGTH else text


def transaction_lines(transaction: Json, *, exchanges: bool = False) -> Iterator[str]:
    """The lines of a transaction of either mode.

    exchanges: whether to print every request to the network, every answer and notification.
    """
    name = transaction["transaction_id"]
    head = f"{name} of service {transaction['service_id']}, mode {transaction['mode']}"
    yield f"{head}: {coloured_status(status_words(transaction['status']))}"
    yield from (_INDENT + line for line in _fact_lines(transaction))
    for attempt in transaction.get("attempts", ()):
        yield ""
        yield f"attempt {attempt['number']} at network {attempt['network']}: {attempt['outcome']}"
        yield from (_INDENT + line for line in _attempt_lines(attempt))
        if exchanges:
            for each in attempt["exchanges"]:
                yield from _exchange_lines(each)
        elif attempt["exchanges"]:
            count = len(attempt["exchanges"])
            yield f"{_INDENT}exchanges with the network: {count}; --exchanges prints them"
    entries = transaction.get("entries", ())
    if entries:
        yield ""
        yield "manual entries"
        yield from (_INDENT + line for entry in entries for line in _entry_lines(entry))
    yield from _advice_lines(transaction)


def _fact_lines(transaction: Json) -> Iterator[str]:
    amount = f"{transaction['amount']} {transaction['currency_code']}"
    parts = (transaction["operation"], amount, transaction["nw"], transaction["party"])
    yield " ".join(filter(None, parts))
    if transaction["reference"]:
        yield f"reference: {transaction['reference']}"
    yield f"network transaction id: {transaction['network_transaction_id']}"
    if transaction["callback_url"]:
        yield f"callback to: {transaction['callback_url']}"
    for change in transaction["timeline"]:
        yield f"{change['at']}  {status_words(change['status'])}"
    if transaction["refund_of"]:
        who = f"{transaction['refunded_by']}: {transaction['refund_reason']}"
        yield f"refund of {transaction['refund_of']} by {who}"
    for refund in transaction.get("refunds", ()):
        amount = f"{refund['amount']} {refund['currency_code']}"
        paid_back = f"{refund['transaction_id']}, {status_words(refund['status'])}"
        yield f"refund of {amount}: {paid_back}, by {refund['refunded_by']}"
    if transaction["override"] is not None:
        yield f"override: {json.dumps(transaction['override'])}"
    if transaction["replaced_by"] is not None:
        yield f"replaced by: {transaction['replaced_by']}, which has the same transaction_id"
    if transaction["expires_at"] is not None:
        verb = "expired" if transaction["expired"] else "expires"
        yield f"{verb} for status queries at {transaction['expires_at']}"


def _attempt_lines(attempt: Json) -> Iterator[str]:
    decided = attempt["decided_at"]
    yield f"begun {attempt['created_at']}" + ("" if decided is None else f", decided {decided}")
    network_id = f", network id {attempt['network_id']}" if attempt["network_id"] else ""
    yield f"reference {attempt['reference']}{network_id}"
    if attempt["sent_currency"] != attempt["currency"]:
        yield f"sent in {attempt['sent_currency']}, with the same amount (D41)"
    if attempt["confirmed_amount"]:
        yield f"the network confirmed {attempt['confirmed_amount']}, not {attempt['amount']}"
    for name in ("reason", "mismatch", "contradiction"):
        if attempt[name]:
            yield f"{name}: {attempt[name]}"
    for decision in attempt["decisions"]:
        force = ", forced" if decision["forced"] else ""
        status = status_words(decision["status"])
        yield f"{decision['at']}  {decision['by']} decided {status}{force}"
        yield f"{_INDENT}because: {decision['reason']}"
        yield f"{_INDENT}the network was asked first: {decision['network_said']}"
    if attempt["settled_by"] and not attempt["decisions"]:  # records of older versions
        yield f"{attempt['settled_by']} decided: {attempt['settled_reason']}"


def _entry_lines(entry: Json) -> Iterator[str]:
    """A manual entry in the ledger, with who made it and why."""
    manual, amount = entry["manual"], entry["amount"].removeprefix("-")
    moved = f"{amount} from {entry['debit']} to {entry['credit']}"
    yield f"{entry['at']}  {manual['by']} {entry['reason']} {moved}"
    yield f"{_INDENT}because: {manual['reason']}"


def _exchange_lines(exchange: Json) -> Iterator[str]:
    """A request to the network and its answer, or a notification from the network."""
    status = exchange["status"] and f"HTTP {exchange['status']}"
    answer = ", ".join(filter(None, (status, exchange["problem"]))) or "answered"
    yield ""
    head = f"{exchange['at']}  {exchange['purpose']}: {answer}"
    yield f"{_INDENT}{head}, in {exchange['duration_ms']} ms"
    yield f"{_INDENT}> {exchange['method']} {exchange['url']}"
    yield from _message_lines(">", exchange["request_headers"], exchange["request_body"])
    yield from _message_lines("<", exchange["answer_headers"], exchange["answer_body"])


def _message_lines(mark: str, headers: dict[str, Any], body: str) -> Iterator[str]:
    for name, value in headers.items():
        yield f"{_INDENT}{mark} {name}: {value}"
    if body:
        yield f"{_INDENT}{mark} {body}"


def _advice_lines(transaction: Json) -> Iterator[str]:
    """Why a transaction of mode P is open or waits for a person, and which commands help."""
    is_open, waiting = transaction.get("open_because", ()), transaction.get("waiting", ())
    if not is_open and not waiting:
        return
    yield ""
    yield from (f"open: {why}" for why in is_open)
    yield from (f"waits for a person: {why}" for why in waiting)
    ids = f"{transaction['service_id']} {transaction['network_transaction_id']}"
    status = "STATUS" if is_open else transaction["status"]
    yield f"ask the network now: sandbox-sim transactions ask {ids}"
    decided = f"{ids} {status} --reason WHY --by NAME"
    yield f"or decide yourself: sandbox-sim transactions settle {decided}"
