"""Compares the statement of a network with our attempts; says what to do. Source: D39, D45.

A row is a payment, or the reversal of one: by its status or type, by its sign, or because another
row for the same attempt has the other sign. A reversal never matches a success; it agrees if the
payment was reversed here too, or never succeeded.

A statement is a CSV file with the column names of the network. The public sources, listed here, do
not define the columns of an export reliably, so the user can name each column:

- Paystack: a transaction has id, reference, amount, currency, status and paid_at
  (github.com/api-evangelist/paystack, paystack-transaction-schema.json), and an export of them the
  statuses success, failed, abandoned and reversed
  (docs.njiapay.com/reconciliation/understanding-psp-reports). So a charge that was reversed is
  one row with the status reversed.
- MTN MoMo: the external id of a request is included in the transaction history report
  (momopy.rewriteapi.cm/reference/api-reference/body-details, of MTN's API). Our adapter sends the
  client's `transaction_id` there. The identifier of the network is its financial transaction id, as
  aggregators call it too (docs.pawapay.io/dashboard/transactions/deposits).
"""

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple, TextIO

from sandbox_sim.values.money import decimals_of
from sandbox_sim.values.peer_input import amount_of, clean_reason
from sandbox_sim.values.vocabulary import DEFAULT_CURRENCY


class StatementRow(NamedTuple):
    """A row of a statement.

    line: of the file, counted from 1.
    reference, network_id, transaction_id: some of them may be empty.
    amount: a statement may show money that goes out as a number below zero.
    currency: empty if the statement has none.
    word: its status and its type, in lower case, or empty.
    """

    line: int
    reference: str
    network_id: str
    amount: Decimal
    currency: str = ""
    transaction_id: str = ""
    word: str = ""

    @property
    def name(self) -> str:
        """The first of its identifiers that is not empty."""
        return self.reference or self.network_id or self.transaction_id


class OurAttempt(NamedTuple):
    """An attempt of the gateway.

    in_period: whether the statement must have it if it succeeded.
    brings_money: whether it is paid to us.
    """

    id: str
    reference: str
    network_id: str
    amount: Decimal
    currency: str
    outcome: str
    service_id: int
    transaction_id: str
    in_period: bool = True
    brings_money: bool = False


class Action(StrEnum):
    """What a person should do about a row."""

    SETTLE = "settle"  # decide what is open here
    RESOLVE = "resolve"  # correct the books
    ASK = "ask"  # find out more, here or at the network


class NextStep(NamedTuple):
    """What to do about a row, and how, in words."""

    do: Action
    how: str


class Unmatched(NamedTuple):
    """A row without a matching attempt, what the gateway has instead, and what to do."""

    row: StatementRow
    here: str
    step: NextStep


class Pair(NamedTuple):
    """A row and our attempt."""

    row: StatementRow
    attempt: OurAttempt


class Reconciliation(NamedTuple):
    """The result; each row is in one of the first five, in the order of the file.

    taken_back: the reversals that agree, and the payments that failed here and that the network
    reversed.
    not_taken_back: the reversals of payments that are successful or unknown here.
    """

    matched: list[Pair]
    taken_back: list[Pair]
    different: list[Pair]
    missing_here: list[Unmatched]
    not_taken_back: list[Unmatched]
    missing_there: list[OurAttempt]

    @property
    def agrees(self) -> bool:
        """Whether every row agrees and none is missing."""
        wrong = self.different or self.missing_here or self.not_taken_back or self.missing_there
        return not wrong


SUCCEEDED: Final = "succeeded"

REVERSED: Final = "reversed"

_REVERSAL_WORDS: Final = ("revers", "chargeback", "charge back", "charged back")

_OPEN: Final = frozenset({"pending", "unknown"})

# The outcomes of a payment that the network carried out at some time.
_CARRIED_OUT: Final = frozenset({SUCCEEDED, REVERSED})


def reconcile(rows: Iterable[StatementRow], attempts: Sequence[OurAttempt]) -> Reconciliation:
    """Compare rows with attempts. An attempt matches one row, and its reversal another one."""
    return _Comparison(list(rows), attempts).result()


class _Comparison:
    def __init__(self, rows: Sequence[StatementRow], attempts: Sequence[OurAttempt]) -> None:
        self._rows = rows
        self._attempts = attempts
        self._by_identifier: dict[str, list[OurAttempt]] = defaultdict(list)
        for attempt in attempts:
            for name in {attempt.reference, attempt.network_id, attempt.transaction_id}:
                self._by_identifier[name].append(attempt)
        self._candidates_by_line = {row.line: self._candidates(row) for row in rows}
        # The attempts that have a row with an amount below zero.
        self._below_zero = {
            each.id for row in rows if row.amount < 0 for each in self._candidates_by_line[row.line]
        }
        self._is_reversal = {row.line: self._reverses(row) for row in rows}
        reversals = [row for row in rows if self._is_reversal[row.line]]
        self._taken_back = {
            each.id for row in reversals for each in self._candidates_by_line[row.line]
        }
        # The line that each attempt, and the reversal of each, was found in.
        self._matched_lines: dict[tuple[str, bool], int] = {}

    def result(self) -> Reconciliation:
        found = Reconciliation([], [], [], [], [], [])
        for row in self._rows:
            is_reversal = self._is_reversal[row.line]
            candidates = self._unmatched_candidates(row)
            if not candidates:
                into = found.not_taken_back if is_reversal else found.missing_here
                into.append(self._unmatched(row))
                continue
            agreeing = [each for each in candidates if _agrees(row, each)]
            attempt = (agreeing or candidates)[0]
            self._matched_lines[attempt.id, is_reversal] = row.line
            is_back = is_reversal or attempt.outcome not in _CARRIED_OUT
            same = found.taken_back if is_back else found.matched
            (same if agreeing else found.different).append(Pair(row, attempt))
        with_row = {attempt_id for attempt_id, _ in self._matched_lines}
        found.missing_there.extend(
            each
            for each in self._attempts
            if each.in_period and each.outcome in _CARRIED_OUT and each.id not in with_row
        )
        return found

    def _candidates(self, row: StatementRow) -> list[OurAttempt]:
        for name in (row.reference, row.network_id, row.transaction_id):
            if name and name in self._by_identifier:
                return self._by_identifier[name]
        return []

    def _reverses(self, row: StatementRow) -> bool:
        """Whether a row is the reversal of a payment."""
        found = self._candidates_by_line[row.line]
        brings_money = any(each.brings_money for each in found)
        if any(word in row.word for word in _REVERSAL_WORDS):
            return True
        if "refund" in row.word and (brings_money or not found):
            return True
        if row.amount < 0:
            return brings_money
        return not brings_money and any(each.id in self._below_zero for each in found)

    def _unmatched_candidates(self, row: StatementRow) -> list[OurAttempt]:
        """The attempts that fit a row and that no earlier row matches."""
        is_reversal = self._is_reversal[row.line]
        unmatched = []
        for each in self._candidates_by_line[row.line]:
            # A failure here and a reversal by the network agree: no money moved.
            undone = each.outcome not in {*_OPEN, SUCCEEDED}
            carried_out = each.outcome in _CARRIED_OUT
            reversed_too = undone and each.id in self._taken_back
            fits = undone if is_reversal else carried_out or reversed_too
            if fits and (each.id, is_reversal) not in self._matched_lines:
                unmatched.append(each)
        return unmatched

    def _unmatched(self, row: StatementRow) -> Unmatched:
        is_reversal = self._is_reversal[row.line]
        found = self._candidates_by_line[row.line]
        if not found:
            here = "no payment with this reference"
            how = "ask the network what it is; it may belong to another account or gateway"
            return Unmatched(row, here, NextStep(Action.ASK, how))
        attempt = found[-1]
        before = self._matched_lines.get((attempt.id, is_reversal))
        if before is not None:
            here = f"the statement already has it in line {before}"
            how = "ask the network whether it moved the money twice"
            return Unmatched(row, here, NextStep(Action.ASK, how))
        here = f"it is {attempt.outcome} here"
        if is_reversal:
            ask = f"sandbox-sim transactions ask {_name(attempt)}"
            how = f"{ask}: the reversal is recorded once the network confirms it"
            return Unmatched(row, here, NextStep(Action.ASK, how))
        return Unmatched(row, here, _about_missing_here(row, attempt))


def _about_missing_here(row: StatementRow, attempt: OurAttempt) -> NextStep:
    name = _name(attempt)
    ask = f"sandbox-sim transactions ask {name}"
    if attempt.outcome in _OPEN:
        why = f'--reason "line {row.line} of the statement"'
        if row.network_id and not attempt.network_id:
            why += f" --network-id {row.network_id}"
        how = f"{ask}; if it stays undecided, sandbox-sim transactions settle {name} 000 {why}"
        return NextStep(Action.SETTLE, how)
    how = f"{ask}: its success goes to suspense; then sandbox-sim ledger resolve {name}"
    return NextStep(Action.RESOLVE, how)


def about_difference(pair: Pair) -> NextStep:
    """What to do about a row with another amount or currency."""
    how = (
        f"sandbox-sim transactions ask {_name(pair.attempt)}; if the statement is right, correct "
        "the books with sandbox-sim ledger adjust"
    )
    return NextStep(Action.RESOLVE, how)


def about_missing_there(attempt: OurAttempt) -> NextStep:
    """What to do about a success without a row."""
    how = (
        f"sandbox-sim transactions ask {_name(attempt)}, and look at the next statement if it is "
        "from its last day; then ask the network"
    )
    return NextStep(Action.ASK, how)


def _name(attempt: OurAttempt) -> str:
    return f"{attempt.service_id} {attempt.transaction_id}"


def _agrees(row: StatementRow, attempt: OurAttempt) -> bool:
    return abs(row.amount) == attempt.amount and row.currency in {"", attempt.currency}


# The names that a column may have besides ours, in lower case and with blanks for _. Of a network,
# `transaction id` is its own; `transaction_id`, as we write it, is the client's.
COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "reference": ("transaction reference",),
    "network_id": ("network id", "financial transaction id", "transaction id", "id"),
    "transaction_id": ("external id", "external transaction id"),
    "amount": ("amount paid",),
    "currency": (),
    "at": ("paid at", "transaction date", "date", "created at"),
    "status": ("transaction status",),
    "type": ("transaction type",),
}

_IDENTIFIERS: Final = ("reference", "network_id", "transaction_id")

# The statuses of payments that the network has not carried out.
_NOT_CARRIED_OUT: Final = frozenset(
    {
        *("failed", "failure", "abandoned", "cancelled", "canceled", "declined", "rejected"),
        *("pending", "ongoing", "processing", "queued", "expired", "timeout"),
    }
)


_COMMA_BETWEEN_THOUSANDS: Final = re.compile(r",(?=[0-9]{3}(?![0-9]))")


class BadStatement(ValueError):
    """A file is not a statement; the text names the line, and says what to do."""


class NetworkStatement(NamedTuple):
    """The rows of payments that were carried out or reversed, and their days.

    left_out: how many rows were left out, because their payment was not carried out.
    """

    rows: Sequence[StatementRow]
    days: Sequence[date]
    left_out: int


def read_statement(
    text: TextIO, column_names: Mapping[str, str], *, in_minor_units: bool, needs_days: bool
) -> NetworkStatement:
    """Read a statement.

    column_names: the column names that the user gave, by field.
    in_minor_units: whether amounts are in the smallest unit, such as pesewas.
    needs_days: whether the days are needed.

    Raises:
        BadStatement: it is not CSV, a column is missing, or a value cannot be read.
    """
    first = text.readline()
    delimiter = ";" if first.count(";") > first.count(",") else ","
    places = _column_indexes(next(csv.reader([first], delimiter=delimiter), []), column_names)
    rows, days, left_out = [], [], 0
    for line, cells in _lines(text, delimiter):
        values = {
            field: cells[place].strip() for field, place in places.items() if place < len(cells)
        }
        if values.get("status", "").lower() in _NOT_CARRIED_OUT:
            left_out += 1
            continue
        rows.append(_row(line, values, in_minor_units=in_minor_units))
        if needs_days and values.get("at"):
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


def _column_indexes(header: Sequence[str], column_names: Mapping[str, str]) -> Mapping[str, int]:
    """The index of the column of each field. Raises `BadStatement` if a needed one is missing."""
    names = [_normalized(name) for name in header]
    places = {}
    for field, others in COLUMNS.items():
        given = column_names.get(field)
        for name in (field, *others) if given is None else (_normalized(given),):
            if name in names:
                places[field] = names.index(name)
                break
        else:
            if given is not None:
                listed = ", ".join(filter(None, map(str.strip, header)))
                raise BadStatement(f"there is no column {given!r}; the columns are {listed}")
    if "amount" not in places or not places.keys() & set(_IDENTIFIERS):
        raise BadStatement(
            "the first line of the statement must name its columns, with amount and at least one "
            "of reference, network_id and transaction_id; map other names, such as --column "
            "amount='Amount paid'"
        )
    return places


def _normalized(name: str) -> str:
    name = name.strip().lower()
    return name if name in COLUMNS else " ".join(name.replace("_", " ").split())


def _row(line: int, values: Mapping[str, str], *, in_minor_units: bool) -> StatementRow:
    if not any(values.get(name) for name in _IDENTIFIERS):
        raise BadStatement(f"line {line}: reference, network_id and transaction_id are missing")
    currency = values.get("currency", "")
    amount = _amount(line, values.get("amount", ""))
    if in_minor_units:
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
    """An amount, which may have commas between thousands. A network wrote it, so it is bounded."""
    amount = amount_of(_COMMA_BETWEEN_THOUSANDS.sub("", text))
    if amount is None:
        raise BadStatement(f"line {line}: {clean_reason(text)!r} is not an amount")
    return amount


def _day(line: int, text: str) -> date:
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        raise BadStatement(
            f"line {line}: at {text!r} is not a date such as 2026-01-31; give the period with "
            "--since and --until"
        ) from None
