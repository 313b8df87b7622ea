"""`sandbox-sim reconcile NETWORK STATEMENT.csv`: compares a network's statement with ours."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import click

from sandbox_sim.cli import tables
from sandbox_sim.cli.client import Session, with_session
from sandbox_sim.cli.options import LIST_LIMIT, Day
from sandbox_sim.cli.record_commands import every_record
from sandbox_sim.operations import PAYMENTS
from sandbox_sim.production.reconciliation import (
    COLUMNS,
    REVERSED,
    SUCCEEDED,
    BadStatement,
    NetworkStatement,
    NextStep,
    OurAttempt,
    Reconciliation,
    StatementRow,
    Unmatched,
    about_difference,
    about_missing_there,
    read_statement,
    reconcile as match_statement,
)
from sandbox_sim.values.redaction import printable
from sandbox_sim.values.timestamps import iso

# The operations that bring money into a wallet.
_BRING_MONEY: Final = frozenset(each.value for each in PAYMENTS if each.row.fills)

# A time always has an offset from UTC.
_TIMES: Final = ("%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z")
_DAY_OR_TIME: Final = Day(_TIMES, "2026-01-31T09:30:00Z")
_PERIOD: Final[Mapping[str, Any]] = {"type": _DAY_OR_TIME, "metavar": "DAY|TIME"}


def _parse_columns(
    _context: click.Context, _param: click.Parameter, given: tuple[str, ...]
) -> Mapping[str, str]:
    """The values of --column: the name of the column of each field."""
    columns = {}
    for text in given:
        field, _, name = text.partition("=")
        if field not in COLUMNS or not name.strip():
            fields = ", ".join(COLUMNS)
            raise click.BadParameter(
                f"{text!r} is not FIELD=NAME, such as amount='Amount paid'; the fields are {fields}"
            )
        columns[field] = name
    return columns


@click.command()
@click.argument("network")
@click.argument("statement", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--since",
    help="The first day of the statement, in UTC, or a time such as 2026-01-31T09:30:00Z.",
    **_PERIOD,
)
@click.option("--until", help="The last day of the statement, or the time at its end.", **_PERIOD)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="FIELD=NAME",
    callback=_parse_columns,
    help="The name of the column of a field; may be repeated.",
)
@click.option("--minor", is_flag=True, help="Amounts are in the smallest unit, such as pesewas.")
@with_session
def reconcile(
    session: Session,
    network: str,
    statement: Path,
    since: datetime | None,
    until: datetime | None,
    columns: Mapping[str, str],
    *,
    minor: bool,
) -> None:
    """Compare the statement of a network with our attempts.

    The output ends with what to do about each difference.

    STATEMENT is a CSV file. It needs the column amount, and reference, network_id or
    transaction_id; it may have currency, at, status and type. Column names of Paystack and MTN are
    known too; give others with --column. The period is from --since to --until; by default that of
    the column at, and without it all time. Exit 0 if both agree, 1 if they differ.
    """
    read = _load(statement, columns, minor=minor, dated=since is None or until is None)
    _check_network(session, network)
    begin = _period_begin(since or min(read.days, default=None))
    end = _period_end(until or max(read.days, default=None))
    attempts = _attempts(session, network, begin, end)
    known = {
        name for each in attempts for name in (each.reference, each.network_id, each.transaction_id)
    }
    for row in read.rows:
        if known.isdisjoint({row.reference, row.network_id, row.transaction_id} - {""}):
            attempts += _attempts_named_by(session, network, row)
    result = match_statement(read.rows, attempts)
    if session.as_json:
        click.echo(json.dumps(_document(network, result, read.left_out)))
    else:
        click.echo("\n".join(_lines(network, result, read.left_out)))
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


def _load(file: Path, columns: Mapping[str, str], *, minor: bool, dated: bool) -> NetworkStatement:
    try:
        with file.open(newline="", encoding="utf-8-sig") as text:
            return read_statement(text, columns, in_minor_units=minor, needs_days=dated)
    except BadStatement as problem:
        raise click.UsageError(printable(str(problem))) from None
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file} is not a CSV file in UTF-8: {error}") from None


def _period_begin(first: date | None) -> str | None:
    """The time at which a period begins, as the control API takes it. first: a day or a time."""
    if isinstance(first, datetime) and first.tzinfo:
        return iso(first.astimezone(UTC))
    return None if first is None else f"{first:%Y-%m-%d}T00:00:00Z"


def _period_end(last: date | None) -> str | None:
    """The time at which a period ends, which is after all of its last day."""
    is_time = isinstance(last, datetime) and last.tzinfo
    return _period_begin(last if is_time or last is None else last + timedelta(days=1))


def _attempts(
    session: Session, network: str, begin: str | None, end: str | None
) -> list[OurAttempt]:
    """Our attempts that succeeded, of those begun in a period, also those reversed since."""
    period = [("since", begin), ("until", end)]
    found: list[Mapping[str, Any]] = []
    for outcome in (SUCCEEDED, REVERSED):
        query = [("network", network), ("outcome", outcome), *period]
        found += every_record(session, "attempts", query)
    # Amounts of SMS are in units, which are not on a statement of money.
    return [_our_attempt(each) for each in found if each["operation"] != "sms"]


def _attempts_named_by(session: Session, network: str, row: StatementRow) -> list[OurAttempt]:
    """Our attempts that a row names, of any period and outcome."""
    names = (("reference", row.reference), ("network_id", row.network_id))
    for name, value in filter(itemgetter(1), names):
        query = [("network", network), (name, value), ("limit", LIST_LIMIT)]
        page = session.gateway.control("GET", "attempts", query=query).document
        if page["attempts"]:
            return [_our_attempt(each)._replace(in_period=False) for each in page["attempts"]]
    return _transaction_attempts(session, network, row.transaction_id) if row.transaction_id else []


def _transaction_attempts(session: Session, network: str, transaction_id: str) -> list[OurAttempt]:
    """The attempts at a network for this transaction_id, of all services."""
    query = [("transaction_id", transaction_id), ("mode", "P"), ("limit", LIST_LIMIT)]
    page = session.gateway.control("GET", "transactions", query=query).document
    found = []
    for each in page["transactions"]:
        ids = str(each["service_id"]), each["network_transaction_id"]
        answer = session.gateway.control("GET", "transactions", *ids, query=[("mode", "P")])
        found += [
            attempt for attempt in answer.document["attempts"] if attempt["network"] == network
        ]
    return [_our_attempt(each)._replace(in_period=False) for each in found]


def _our_attempt(shown: Mapping[str, Any]) -> OurAttempt:
    return OurAttempt(
        shown["id"],
        shown["reference"],
        shown["network_id"],
        Decimal(shown["confirmed_amount"] or shown["amount"]),
        shown["sent_currency"],
        shown["outcome"],
        shown["service_id"],
        shown["transaction_id"],
        brings_money=shown["operation"] in _BRING_MONEY,
    )


def _row_fields(row: StatementRow) -> dict[str, object]:
    return {**row._asdict(), "amount": str(row.amount)}


def _attempt_fields(attempt: OurAttempt) -> dict[str, object]:
    fields = {**attempt._asdict(), "amount": str(attempt.amount)}
    del fields["in_period"]
    return fields


def _document(network: str, result: Reconciliation, left_out: int) -> dict[str, object]:
    return {
        "network": network,
        "agrees": result.agrees,
        "matched": len(result.matched),
        "taken_back": len(result.taken_back),
        "not_carried_out": left_out,
        "different": [
            {
                "row": _row_fields(pair.row),
                "attempt": _attempt_fields(pair.attempt),
                **about_difference(pair)._asdict(),
            }
            for pair in result.different
        ],
        "missing_here": [_unmatched(each) for each in result.missing_here],
        "not_taken_back": [_unmatched(each) for each in result.not_taken_back],
        "missing_there": [
            {**_attempt_fields(each), **about_missing_there(each)._asdict()}
            for each in result.missing_there
        ],
    }


def _unmatched(found: Unmatched) -> dict[str, object]:
    return {"row": _row_fields(found.row), "here": found.here, **found.step._asdict()}


def _lines(network: str, result: Reconciliation, left_out: int) -> Iterator[str]:
    rows: list[list[object]] = []
    steps: list[NextStep] = []
    for pair in result.different:
        note = f"{pair.attempt.amount} {pair.attempt.currency} here"
        rows.append(["different amount", *_row_cells(pair.row), note])
        steps.append(about_difference(pair))
    for what, found in (
        ("missing here", result.missing_here),
        ("not taken back here", result.not_taken_back),
    ):
        rows += [[what, *_row_cells(row), here] for row, here, _ in found]
        steps += [step for *_, step in found]
    for each in result.missing_there:
        note = f"transaction {each.transaction_id} of service {each.service_id}"
        amount = f"{each.amount} {each.currency}"
        rows.append(["missing there", None, each.reference, amount, note])
        steps.append(about_missing_there(each))
    if rows:
        numbered = [[number, *row] for number, row in enumerate(rows, 1)]
        yield from tables.table(["", "what", "line", "reference", "amount", "note"], numbered)
    yield (
        f"{network}: {len(result.matched)} matched, {len(result.different)} different in amount, "
        f"{len(result.missing_here)} missing here, {len(result.missing_there)} missing there"
    )
    if result.taken_back or result.not_taken_back:
        wrong = len(result.not_taken_back)
        yield f"taken back: {len(result.taken_back)} here too, {wrong} not here"
    if left_out:
        yield f"{left_out} rows were left out: their payments were not carried out"
    if steps:
        yield "what to do:"
    for number, (do, how) in enumerate(steps, 1):
        yield f"{number}. {do}: {how}"


def _row_cells(row: StatementRow) -> tuple[int, str, str]:
    return row.line, row.name, f"{row.amount} {row.currency}".strip()
