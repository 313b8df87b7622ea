"""`sandbox-sim inbox show | wait | clear`: the built-in receivers of callbacks."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from sandbox_sim.cli.client import REQUEST_TIMEOUT_S
from sandbox_sim.cli.commands.records import deleted
from sandbox_sim.cli.matching import Pairs, matched, matching, where_option
from sandbox_sim.cli.search_commands import more, page_options, page_query, wait_body, wait_options
from sandbox_sim.cli.session import Session, asks
from sandbox_sim.cli.tables import table


@click.group()
def inbox() -> None:
    """The deliveries to a built-in receiver. Its address is …/_sandbox/inbox/NAME."""


@inbox.command()
@click.argument("name")
@where_option
@page_options
@asks
def show(session: Session, name: str, limit: int, after: str | None, where: Pairs) -> None:
    """Show the deliveries in an inbox, newest first."""
    query = page_query(limit, after, *where)
    answer = session.gateway.control("GET", "inbox", name, "messages", query=query)
    session.show(answer, _page)


@inbox.command()
@click.argument("name")
@matching
@wait_options
@asks
def wait(
    session: Session,
    name: str,
    match: Pairs,
    exactly: Mapping[str, object],
    count: int,
    timeout: float,
) -> None:
    """Wait until deliveries match, and show them. The name json.trans_ref looks inside a body."""
    body = wait_body(matched({}, match, exactly), count, timeout)
    path = ("inbox", name, "wait")
    answer = session.gateway.control(
        "POST", *path, body=body, timeout_s=timeout + REQUEST_TIMEOUT_S
    )
    session.show(answer, _lines)


@inbox.command()
@click.argument("name")
@asks
def clear(session: Session, name: str) -> None:
    """Empty an inbox."""
    session.show(session.gateway.control("DELETE", "inbox", name), deleted)


def _page(document: dict[str, Any]) -> Iterator[str]:
    yield from _lines(document)
    yield from more(document)


def _lines(document: dict[str, Any]) -> Iterator[str]:
    messages = document["messages"]
    if not messages:
        yield "no deliveries"
        return
    rows = [[each["at"], each["method"], each["signature"], each["body"]] for each in messages]
    yield from table(("time", "method", "signature", "body"), rows, shorten=False)
