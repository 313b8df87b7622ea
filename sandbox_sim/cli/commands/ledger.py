"""`sandbox-sim ledger`: balances, postings, manual entries, and settlement to merchants."""

import csv
import io
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import click
from click.core import ParameterSource

from sandbox_sim.cli.client import Session, with_session
from sandbox_sim.cli.options import Day, Filter, Query, by_option, list_options
from sandbox_sim.cli.tables import next_page_line, table

_ACCOUNTS = "sms, collection, payout or airtime"
_ENDS = "collection, payout, sms, airtime, clearing, fees or suspense"
_FILTERS = (
    Filter("mode", "postings of this mode, S or P"),
    Filter("service_id", "postings of this service"),
    Filter("account", f"postings of this account: {_ACCOUNTS}"),
    Filter("reason", "postings with this reason"),
    Filter("subject", "postings of this payment, send or batch"),
)
# An audit of millions of transfers takes minutes.
_AUDIT_TIMEOUT_S = 600.0


@click.group()
def ledger() -> None:
    """Balances, postings and SMS units; the books of mode P."""


_by = by_option("Who makes the entry.")
_reference = click.option("--reference", help="Your own reference, such as a ticket number.")


def _signature_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say who makes an entry and why."""
    why = click.option("--reason", required=True, help="Why; it is saved with your name.")
    return why(_by(_reference(command)))


@ledger.command()
@list_options(_FILTERS)
@with_session
def show(session: Session, query: Query) -> None:
    """Show postings, newest first, and the balances."""
    session.request("GET", "ledger", query=query, lines=_posting_lines)


def _posting_lines(document: dict[str, Any]) -> Iterator[str]:
    postings = document["postings"]
    if postings:
        with_manual = any("manual" in each for each in postings)
        rows = [_posting_cells(each, with_manual=with_manual) for each in postings]
        yield from _records_table(rows, "at", "id", "service_id", "account", "amount", "reason")
    else:
        yield "no postings"
    yield from next_page_line(document)
    for name, first in (("balances", ("service_id", "account")), ("accounts", ("account",))):
        if document.get(name):
            yield ""
            yield from _records_table(document[name], *first, "balance")


def _posting_cells(posting: dict[str, Any], *, with_manual: bool) -> dict[str, Any]:
    """The cells of a posting. with_manual: whether the table has columns for manual entries."""
    cells = {name: value for name, value in posting.items() if name != "manual"}
    manual = posting.get("manual", {"by": "", "reason": "", "reference": ""})
    if with_manual:
        cells |= {"by": manual["by"], "why": manual["reason"], "reference": manual["reference"]}
    return cells


@ledger.command()
@with_session
def audit(session: Session) -> None:
    """Add up the whole ledger and check all its rules. Exit 1 if one is broken."""
    query = [("audit", "true"), ("limit", 1)]
    answer = session.gateway.control("GET", "ledger", query=query, timeout_s=_AUDIT_TIMEOUT_S)
    session.show(answer, _audit_lines)
    if not answer.document["agrees"]:
        click.get_current_context().exit(1)


def _audit_lines(document: dict[str, Any]) -> Iterator[str]:
    for each in document["violations"]:
        yield f"the ledger breaks a rule: {each['rule']}: {each['detail']}"
    if document["agrees"]:
        yield (
            f"{document['postings_checked']} postings checked: every balance is the sum of its "
            "transfers, every pending amount is the sum of open transfers, no transfer ended "
            "twice, no wallet of mode P is below zero, and every manual entry has a name and a "
            "reason"
        )


def _records_table(records: list[dict[str, Any]], *names: str) -> Iterator[str]:
    """A table with these fields first, then the others."""
    columns = (*names, *(name for name in records[0] if name not in names))
    return table(columns, [[record[name] for name in columns] for record in records])


@ledger.command()
@click.argument("service_id", type=int)
@click.argument("units", type=int)
@click.option("--mode", type=click.Choice(["S", "P"]), default="S", help="The service mode.")
@click.option(
    "--account", type=click.Choice(["sms", "airtime"]), default="sms", help="airtime: mode P only."
)
@click.option("--reason", help="Mode P: why; it is saved with your name.")
@_by
@_reference
@with_session
def topup(
    session: Session,
    /,
    service_id: int,
    units: int,
    mode: str,
    account: str,
    reason: str | None,
    **signature: str,
) -> None:
    """Add SMS units to a service, or airtime in mode P. Mode P needs --reason."""
    body: dict[str, object] = {"service_id": service_id, "units": units}
    if mode != "S" or account != "sms":
        body |= {"mode": mode, "account": account}
    if mode == "P" and not reason:
        raise click.UsageError("--mode P needs --reason: say why the units are added")
    source = click.get_current_context().get_parameter_source("by")
    has_name = source is not ParameterSource.DEFAULT
    if mode == "S" and (reason or signature["reference"] or has_name):
        raise click.UsageError("--by, --reason and --reference are for --mode P")
    if mode == "P":
        body |= {"reason": reason, **signature}
    session.request("POST", "ledger", "topup", body=body, lines=_balance_line)


def _balance_line(document: dict[str, Any]) -> Iterator[str]:
    mode = f" in mode {document['mode']}" if "mode" in document else ""
    has = f"{document['sms_balance']} SMS units" if "sms_balance" in document else "airtime of "
    has += document.get("airtime_balance", "")
    yield f"service {document['service_id']} has {has}{mode}"


@ledger.command()
@with_session
def suspense(session: Session) -> None:
    """List the amounts in suspense in mode P, for each payment."""
    session.request("GET", "ledger", "suspense", lines=_suspense_lines)


def _suspense_lines(document: dict[str, Any]) -> Iterator[str]:
    items = document["suspense"]
    if not items:
        yield "nothing is in suspense"
        return
    names = ("since", "service_id", "transaction_id", "network", "amount", "asset")
    yield from table(names, [[each[name] for name in names] for each in items])


@ledger.command()
@click.argument("ids", nargs=-1, required=True, metavar="[SERVICE_ID] ID")
@click.option(
    "--to",
    type=click.Choice(["service", "clearing", "fees"]),
    required=True,
    help="Where it goes: the wallet of the service, the network, or your fees.",
)
@click.option("--amount", help="The amount to move; by default all of it.")
@_signature_options
@with_session
def resolve(
    session: Session, /, ids: tuple[str, ...], to: str, amount: str | None, **signature: str
) -> None:
    """Move the amount that a payment of mode P has in suspense to the account of --to.

    ID is any identifier of the payment. A negative amount, which was paid out, is taken from that
    account.
    """
    service_id, name = _parse_ids(ids)
    body = {"transaction": name, "service_id": service_id, "to": to, "amount": amount, **signature}
    session.request("POST", "ledger", "resolve", body=body, lines=_entry_line)


def _parse_ids(ids: tuple[str, ...]) -> tuple[int | None, str]:
    if len(ids) > 2 or (len(ids) == 2 and not ids[0].isdigit()):
        raise click.UsageError("too many arguments: give [SERVICE_ID] ID")
    return (int(ids[0]) if len(ids) == 2 else None), ids[-1]


@ledger.command()
@click.argument("service_id", type=int)
@click.argument("amount")
@click.option("--debit", required=True, help=f"The account that the amount leaves: {_ENDS}.")
@click.option("--credit", required=True, help=f"The account that receives it: {_ENDS}.")
@click.option("--network", help="The network of the account clearing.")
@click.option("--transaction", help="The payment of the amount in suspense.")
@click.option("--currency", default="GHS", help="The currency of a collection or payout wallet.")
@_signature_options
@with_session
def adjust(session: Session, /, service_id: int, amount: str, **fields: str) -> None:
    """Post a correction of mode P between a wallet of a service and an internal account."""
    body: dict[str, object] = {"service_id": service_id, "amount": amount, **fields}
    session.request("POST", "ledger", "adjust", body=body, lines=_entry_line)


@ledger.command()
@click.argument("entry", type=int)
@_signature_options
@with_session
def reverse(session: Session, /, entry: int, **signature: str) -> None:
    """Reverse a manual entry. ENTRY is its id in `ledger show`."""
    body = {"entry": entry, **signature}
    session.request("POST", "ledger", "reverse", body=body, lines=_entry_line)


def _entry_line(document: dict[str, Any]) -> Iterator[str]:
    amount = document["amount"].removeprefix("-")
    moved = f"{amount} from {document['debit']} to {document['credit']}"
    yield f"entry {document['id']}: {moved}, {document['reason']}"


_currency = click.option(
    "--currency", default="GHS", help="The asset of the wallet: a currency, SMS or AIRTIME."
)


@ledger.command()
@click.argument("service_id", type=int)
@click.option(
    "--until", type=Day(), metavar="DAY", required=True, help="The last day of the period, in UTC."
)
@_currency
@_signature_options
@with_session
def close(session: Session, /, service_id: int, until: datetime, **fields: str) -> None:
    """Pay out the collections of a period to the merchant, in one entry of mode P.

    The period begins at the end of the previous one. `ledger statement` shows its lines.
    """
    end = f"{until.date() + timedelta(days=1)}T00:00:00Z"
    body: dict[str, object] = {"service_id": service_id, "until": end, **fields}
    session.request("POST", "ledger", "close", body=body, lines=_period_lines)


def _period_lines(document: dict[str, Any]) -> Iterator[str]:
    service, period = document["service_id"], document["period"]
    count = len(document["lines"])
    paid = f"{document['total']} {document['currency']} in {count} line{'s' * (count != 1)}"
    yield f"period {period} of service {service}, before {document['until']}: {paid}"
    yield f"its lines: sandbox-sim ledger statement {service} --period {period}"


_COLUMNS: Final = (
    *("id", "at", "reason", "transaction_id", "network_transaction_id", "amount", "currency"),
    *("by", "why", "reference"),
)
_TYPED_COLUMNS: Final = ("transaction_id", "by", "why", "reference")


@ledger.command()
@click.argument("service_id", type=int)
@click.option("--period", type=int, help="The number of a closed period; without it, the open one.")
@_currency
@with_session
def statement(session: Session, service_id: int, period: int | None, currency: str) -> None:
    """Write the statement of a period as CSV. The sum of its amounts is the payout."""
    query = [("service_id", service_id), ("period", period), ("currency", currency)]
    session.request("GET", "ledger", "statement", query=query, lines=_statement_lines)


def _statement_lines(document: dict[str, Any]) -> Iterator[str]:
    text = io.StringIO()
    rows = csv.DictWriter(text, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    rows.writeheader()
    for line in document["lines"]:
        manual = line.get("manual", {"reason": ""})
        of_person = {**manual, "why": manual["reason"]}
        ids = {"network_transaction_id": line["subject"], "currency": document["currency"]}
        cells = {**of_person, **line, **ids}
        typed = {name: _escape_formula(cells[name]) for name in _TYPED_COLUMNS if name in cells}
        rows.writerow(cells | typed)
    yield from text.getvalue().splitlines()


def _escape_formula(cell: str) -> str:
    """A cell that people or clients typed, quoted if a spreadsheet would run it as a formula."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell
