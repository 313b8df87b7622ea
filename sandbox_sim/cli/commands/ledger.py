"""`sandbox-sim ledger show | audit | topup`."""

from collections.abc import Iterator
from typing import Any

import click

from sandbox_sim.cli.client import Session, asks
from sandbox_sim.cli.options import Filter, Query, selecting
from sandbox_sim.cli.tables import more, table

_ACCOUNTS = "sms, collection, payout or airtime"
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
    """Balances and their postings; SMS units for a service."""


@ledger.command()
@selecting(_FILTERS)
@asks
def show(session: Session, query: Query) -> None:
    """Show postings, newest first, and the balances."""
    session.ask("GET", "ledger", query=query, lines=_lines)


def _lines(document: dict[str, Any]) -> Iterator[str]:
    postings = document["postings"]
    if postings:
        yield from _table(postings, "at", "id", "service_id", "account", "amount", "reason")
    else:
        yield "no postings"
    yield from more(document)
    for name, first in (("balances", ("service_id", "account")), ("accounts", ("account",))):
        if document.get(name):
            yield ""
            yield from _table(document[name], *first, "balance")


@ledger.command()
@asks
def audit(session: Session) -> None:
    """Add up the whole ledger and check every rule of it.

    The exit code is 1 where a rule does not hold.
    """
    query = [("audit", "true"), ("limit", 1)]
    answer = session.gateway.control("GET", "ledger", query=query, timeout_s=_AUDIT_TIMEOUT_S)
    session.show(answer, _audited)
    if not answer.document["agrees"]:
        click.get_current_context().exit(1)


def _audited(document: dict[str, Any]) -> Iterator[str]:
    for each in document["violations"]:
        yield f"the ledger breaks a rule: {each['rule']}: {each['detail']}"
    if document["agrees"]:
        yield (
            f"{document['postings_checked']} postings checked: every balance is the sum of its "
            "transfers, what is pending is the sum of open transfers, each ended once, and no "
            "wallet of mode P is below zero"
        )


def _table(records: list[dict[str, Any]], *names: str) -> Iterator[str]:
    """A table with these fields first, and then the others."""
    every = (*names, *(name for name in records[0] if name not in names))
    return table(every, [[record[name] for name in every] for record in records])


@ledger.command()
@click.argument("service_id", type=int)
@click.argument("units", type=int)
@click.option("--mode", type=click.Choice(["S", "P"]), default="S", help="The service mode.")
@click.option(
    "--account", type=click.Choice(["sms", "airtime"]), default="sms", help="airtime: mode P only."
)
@asks
def topup(session: Session, service_id: int, units: int, mode: str, account: str) -> None:
    """Add SMS units to a service, or airtime in mode P."""
    body: dict[str, object] = {"service_id": service_id, "units": units}
    if mode != "S" or account != "sms":
        body |= {"mode": mode, "account": account}
    session.ask("POST", "ledger", "topup", body=body, lines=_balance)


def _balance(document: dict[str, Any]) -> Iterator[str]:
    mode = f" in mode {document['mode']}" if "mode" in document else ""
    has = f"{document['sms_balance']} SMS units" if "sms_balance" in document else "airtime of "
    has += document.get("airtime_balance", "")
    yield f"service {document['service_id']} has {has}{mode}"
