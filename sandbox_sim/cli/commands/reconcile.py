"""`sandbox-sim reconcile NETWORK STATEMENT.csv`: a network's statement against our attempts."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

import click

from sandbox_sim.cli import tables
from sandbox_sim.cli.client import Session, asks
from sandbox_sim.cli.options import LIMIT_OF_LISTS
from sandbox_sim.cli.record_commands import every_record
from sandbox_sim.production.reconciliation import (
    OurAttempt,
    Reconciliation,
    StatementRow,
    reconcile as compared,
)
from sandbox_sim.values.redaction import printable

_COLUMNS: Final = ("reference", "network_id", "amount", "currency", "at")
_DAY: Final = click.DateTime(["%Y-%m-%d"])


@click.command()
@click.argument("network")
@click.argument("statement", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--since", type=_DAY, help="The first day of the statement, in UTC.")
@click.option("--until", type=_DAY, help="The last day of the statement, in UTC.")
@asks
def reconcile(
    session: Session,
    network: str,
    statement: Path,
    since: datetime | None,
    until: datetime | None,
) -> None:
    """Compare the statement of a network with what succeeded here.

    STATEMENT is a CSV file with the columns reference or network_id, amount, and where it has them
    currency and at. The period is that of --since and --until, else of the column at, else all.
    Exit code 0 where both agree, 1 where they differ.
    """
    rows, days = _read(statement)
    _check_network(session, network)
    first = since.date() if since else min(days, default=None)
    last = until.date() if until else max(days, default=None)
    attempts = _attempts(session, network, first, last)
    known = {name for each in attempts for name in (each.reference, each.network_id)}
    for row in rows:
        if row.reference not in known and row.network_id not in known:
            attempts += _named(session, network, row)
    result = compared(rows, attempts)
    lines = [json.dumps(_document(network, result))] if session.as_json else _lines(network, result)
    click.echo("\n".join(lines))
    if not result.agrees:
        click.get_current_context().exit(1)


def _check_network(session: Session, network: str) -> None:
    """Raise a usage error for a network that is not configured and has no attempts."""
    listed = session.gateway.control("GET", "networks").document["networks"]
    names = [each["name"] for each in listed]
    if network in names:
        return
    query = [("network", network), ("limit", 1)]
    if session.gateway.control("GET", "attempts", query=query).document["attempts"]:
        return  # it was configured before
    known = f"its networks are {', '.join(names)}" if names else "it runs without production"
    raise click.UsageError(printable(f"{network} is not a network of this gateway; {known}"))


def _read(file: Path) -> tuple[Sequence[StatementRow], Sequence[date]]:
    """The rows of a statement, and the days in its column `at`."""
    rows, days = [], []
    try:
        with file.open(newline="", encoding="utf-8-sig") as text:
            reader = csv.reader(text)
            names = [name.strip().lower() for name in next(reader, ())]
            _check_columns(names)
            for cells in filter(None, reader):
                values = dict(zip(names, map(str.strip, cells), strict=False))
                rows.append(_row(reader.line_num, values))
                if values.get("at"):
                    days.append(_day(reader.line_num, values["at"]))
    except (UnicodeDecodeError, csv.Error) as error:
        raise click.UsageError(f"{file} is no CSV file in UTF-8: {error}") from None
    return rows, days


def _check_columns(names: Sequence[str]) -> None:
    if "amount" not in names or not {"reference", "network_id"} & set(names):
        raise click.UsageError(
            "the first line of the statement must name its columns, and among them amount and "
            f"reference or network_id (known are {', '.join(_COLUMNS)})"
        )


def _row(line: int, values: Mapping[str, str]) -> StatementRow:
    text = {name: values.get(name, "") for name in _COLUMNS}
    try:
        amount = Decimal(text["amount"])
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite():
        raise click.UsageError(f"line {line}: {text['amount']!r} is no amount")
    if not text["reference"] and not text["network_id"]:
        raise click.UsageError(f"line {line}: there is no reference and no network_id")
    return StatementRow(line, text["reference"], text["network_id"], amount, text["currency"])


def _day(line: int, text: str) -> date:
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        raise click.UsageError(f"line {line}: at {text!r} is no date, such as 2026-01-31") from None


def _attempts(
    session: Session, network: str, first: date | None, last: date | None
) -> list[OurAttempt]:
    """What succeeded in the period; both days are included whole."""
    query = [
        ("network", network),
        ("outcome", "succeeded"),
        ("since", first and f"{first}T00:00:00Z"),
        ("until", last and f"{last + timedelta(days=1)}T00:00:00Z"),
    ]
    every = every_record(session, "attempts", query)
    # The amount of an SMS is in units, which no statement of money has.
    return [_ours(each) for each in every if each["operation"] != "sms"]


def _named(session: Session, network: str, row: StatementRow) -> list[OurAttempt]:
    """Our attempts that a row names, of any time and outcome."""
    name, value = ("reference", row.reference) if row.reference else ("network_id", row.network_id)
    query = [("network", network), (name, value), ("limit", LIMIT_OF_LISTS)]
    page = session.gateway.control("GET", "attempts", query=query).document
    return [_ours(each)._replace(in_period=False) for each in page["attempts"]]


def _ours(shown: Mapping[str, Any]) -> OurAttempt:
    return OurAttempt(
        shown["id"],
        shown["reference"],
        shown["network_id"],
        Decimal(shown["confirmed_amount"] or shown["amount"]),
        shown["sent_currency"],
        shown["outcome"],
        shown["service_id"],
        shown["transaction_id"],
    )


def _row_fields(row: StatementRow) -> dict[str, object]:
    return {**row._asdict(), "amount": str(row.amount)}


def _attempt_fields(attempt: OurAttempt) -> dict[str, object]:
    fields = {**attempt._asdict(), "amount": str(attempt.amount)}
    del fields["in_period"]
    return fields


def _document(network: str, result: Reconciliation) -> dict[str, object]:
    return {
        "network": network,
        "agrees": result.agrees,
        "matched": len(result.matched),
        "different": [
            {"row": _row_fields(row), "attempt": _attempt_fields(attempt)}
            for row, attempt in result.different
        ],
        "missing_here": [
            {"row": _row_fields(row), "here": here} for row, here in result.missing_here
        ],
        "missing_there": [_attempt_fields(each) for each in result.missing_there],
    }


def _lines(network: str, result: Reconciliation) -> Iterator[str]:
    rows: list[list[object]] = []
    for row, attempt in result.different:
        said = f"{attempt.amount} {attempt.currency} here"
        rows.append(["different amount", row.line, _name(row), _money(row), said])
    for row, here in result.missing_here:
        rows.append(["missing here", row.line, _name(row), _money(row), here])
    for each in result.missing_there:
        said = f"transaction {each.transaction_id} of service {each.service_id}"
        amount = f"{each.amount} {each.currency}"
        rows.append(["missing there", None, each.reference, amount, said])
    if rows:
        yield from tables.table(["what", "line", "reference", "amount", "note"], rows)
    yield (
        f"{network}: {len(result.matched)} matched, {len(result.different)} different in amount, "
        f"{len(result.missing_here)} missing here, {len(result.missing_there)} missing there"
    )


def _name(row: StatementRow) -> str:
    return row.reference or row.network_id


def _money(row: StatementRow) -> str:
    return f"{row.amount} {row.currency}".strip()
