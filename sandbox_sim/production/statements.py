"""Reads the statements of networks: CSV whose columns have the names of the network.

Sources, as far as they are public. None of them lists the columns of an export for certain, so the
user can name each column:

- Paystack: a transaction has id, reference, amount, currency, status and paid_at
  (github.com/api-evangelist/paystack, paystack-transaction-schema.json), and an export of them the
  statuses success, failed, abandoned and reversed
  (docs.njiapay.com/reconciliation/understanding-psp-reports). So a charge that was taken back is
  one row whose status is reversed.
- MTN MoMo: the external id of a request is included in the transaction history report
  (momopy.rewriteapi.cm/reference/api-reference/body-details, of MTN's API). Our adapter sends the
  client's `transaction_id` there. The identifier of the network is its financial transaction id, as
  aggregators call it too (docs.pawapay.io/dashboard/transactions/deposits).
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Final, NamedTuple, TextIO

from sandbox_sim.production.reconciliation import StatementRow
from sandbox_sim.values.money import decimals_of
from sandbox_sim.values.vocabulary import DEFAULT_CURRENCY

# The names that a column may have, in lower case and with blanks for _; ours goes first.
COLUMNS: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "reference": ("reference", "transaction reference"),
        "network_id": ("network id", "financial transaction id", "transaction id", "id"),
        "transaction_id": ("external id", "external transaction id"),
        "amount": ("amount", "amount paid"),
        "currency": ("currency",),
        "at": ("at", "paid at", "transaction date", "date", "created at"),
        "status": ("status", "transaction status"),
        "type": ("type", "transaction type"),
    }
)

_NAMES: Final = ("reference", "network_id", "transaction_id")

# Under these statuses a network has carried out nothing, or not yet.
_NOT_CARRIED_OUT: Final = frozenset(
    {
        *("failed", "failure", "abandoned", "cancelled", "canceled", "declined", "rejected"),
        *("pending", "ongoing", "processing", "queued", "expired", "timeout"),
    }
)


class BadStatement(ValueError):
    """A file is no statement; the text names the line, and says what to do."""


class NetworkStatement(NamedTuple):
    """The rows of what was carried out or taken back, and the days in them.

    left_out: how many rows are of what was not carried out.
    """

    rows: Sequence[StatementRow]
    days: Sequence[date]
    left_out: int


def read(text: TextIO, named: Mapping[str, str], *, minor: bool, dated: bool) -> NetworkStatement:
    """Read a statement.

    named: fields with the name of their column, where the user gives it.
    minor: whether amounts are in the smallest unit, such as pesewas.
    dated: whether the days are needed.

    Raises:
        BadStatement: it is no CSV, a column is missing, or a value cannot be read.
    """
    first = text.readline()
    delimiter = ";" if first.count(";") > first.count(",") else ","
    places = _places(next(csv.reader([first], delimiter=delimiter), []), named)
    rows, days, left_out = [], [], 0
    for line, cells in _lines(text, delimiter):
        values = {
            field: cells[place].strip() for field, place in places.items() if place < len(cells)
        }
        if values.get("status", "").lower() in _NOT_CARRIED_OUT:
            left_out += 1
            continue
        rows.append(_row(line, values, minor=minor))
        if dated and values.get("at"):
            days.append(_day(line, values["at"]))
    return NetworkStatement(rows, days, left_out)


def _lines(text: Iterable[str], delimiter: str) -> Iterator[tuple[int, Sequence[str]]]:
    """The lines after the first one, counted from 1, without empty ones."""
    reader = csv.reader(text, delimiter=delimiter)
    try:
        for cells in reader:
            if any(cells):
                yield reader.line_num + 1, cells
    except csv.Error as error:
        raise BadStatement(f"line {reader.line_num + 1}: {error}") from None


def _places(header: Sequence[str], named: Mapping[str, str]) -> Mapping[str, int]:
    """Where each field stands."""
    names = [_plain(name) for name in header]
    places = {}
    for field, known in COLUMNS.items():
        given = named.get(field)
        for name in known if given is None else (_plain(given),):
            if name in names:
                places[field] = names.index(name)
                break
        else:
            if given is not None:
                listed = ", ".join(filter(None, map(str.strip, header)))
                raise BadStatement(f"there is no column {given!r}; the columns are {listed}")
    if "amount" not in places or not places.keys() & set(_NAMES):
        raise BadStatement(
            "the first line of the statement must name its columns, and among them amount and "
            "reference, network_id or transaction_id; say which column is which, such as "
            "--column amount='Amount paid'"
        )
    return places


def _plain(name: str) -> str:
    return " ".join(name.strip().lower().replace("_", " ").split())


def _row(line: int, values: Mapping[str, str], *, minor: bool) -> StatementRow:
    if not any(values.get(name) for name in _NAMES):
        raise BadStatement(f"line {line}: there is no reference, network_id or transaction_id")
    currency = values.get("currency", "")
    amount = _amount(line, values.get("amount", ""))
    if minor:
        amount = amount.scaleb(-decimals_of(currency or DEFAULT_CURRENCY))
    return StatementRow(
        line,
        values.get("reference", ""),
        values.get("network_id", ""),
        amount,
        currency,
        values.get("transaction_id", ""),
        f"{values.get('status', '')} {values.get('type', '')}".strip().lower(),
    )


def _amount(line: int, text: str) -> Decimal:
    """An amount, which may have commas between thousands."""
    try:
        amount = Decimal(text.replace(",", ""))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite():
        raise BadStatement(f"line {line}: {text!r} is no amount")
    return amount


def _day(line: int, text: str) -> date:
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        raise BadStatement(
            f"line {line}: at {text!r} is no date, such as 2026-01-31; give the period with "
            "--since and --until"
        ) from None
