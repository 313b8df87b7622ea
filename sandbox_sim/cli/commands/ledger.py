"""`sandbox-sim ledger show | topup`."""

import json
from collections.abc import Iterator
from typing import Any

import click

from sandbox_sim.cli.matching import Filter, Pairs, filtered, given, where_option
from sandbox_sim.cli.search_commands import more, page_options, page_query
from sandbox_sim.cli.session import Session, asks
from sandbox_sim.cli.tables import table

_FILTERS = (
    Filter("mode", "postings of this mode, S or P", ("--mode",)),
    Filter("service_id", "postings of this service", ("--service-id",)),
    Filter(
        "account", "postings of this account: sms, collection, payout or airtime", ("--account",)
    ),
    Filter("reason", "postings with this reason", ("--reason",)),
    Filter("subject", "postings of this payment, send or batch", ("--subject",)),
)


@click.group()
def ledger() -> None:
    """Balances and their postings; SMS units for a service."""


@ledger.command()
@filtered(_FILTERS)
@where_option
@page_options
@asks
def show(
    session: Session, /, limit: int, after: str | None, where: Pairs, **filters: str | None
) -> None:
    """Show postings, newest first. Each balance has the sum of its postings beside it.

    In production the rules of the ledger are checked over all postings of mode P; the exit code is
    1 where one does not hold.
    """
    query = page_query(limit, after, *given(filters), *where)
    answer = session.gateway.control("GET", "ledger", query=query)
    session.show(answer, _lines)
    if json.loads(answer.text).get("live", {}).get("violations"):
        click.get_current_context().exit(1)


def _lines(document: dict[str, Any]) -> Iterator[str]:
    postings, balances = document["postings"], document.get("balances", ())
    if postings:
        yield from _table(postings, "at", "id", "service_id", "account", "amount", "reason")
    else:
        yield "no postings"
    yield from more(document)
    if balances:
        yield ""
        yield from _table(balances, "service_id", "account", "balance", "sum_of_postings", "agrees")
    if "live" in document:
        yield from _books(document["live"])


def _books(live: dict[str, Any]) -> Iterator[str]:
    yield ""
    if live["balances"]:
        yield from _table(live["balances"], "account", "balance")
    for each in live["violations"]:
        yield f"mode P breaks a rule: {each['rule']}: {each['detail']}"
    if live["agrees"]:
        yield (
            f"mode P: {live['postings_checked']} postings checked; every entry is balanced, every "
            "asset sums to zero, and no account is below zero that may not be"
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
    session.show(session.gateway.control("POST", "ledger", "topup", body=body), _balance)


def _balance(document: dict[str, Any]) -> Iterator[str]:
    mode = f" in mode {document['mode']}" if "mode" in document else ""
    has = f"{document['sms_balance']} SMS units" if "sms_balance" in document else "airtime of "
    has += document.get("airtime_balance", "")
    yield f"service {document['service_id']} has {has}{mode}"
