"""`sandbox-sim snapshot save | load | list | delete`: keeps the state under a name."""

from collections.abc import Iterator
from typing import Any

import click

from sandbox_sim.cli.commands.records import deleted
from sandbox_sim.cli.search_commands import more, page_options, page_query, service_query
from sandbox_sim.cli.session import Session, asks
from sandbox_sim.cli.tables import table


@click.group()
def snapshot() -> None:
    """The state, kept under a name and restored."""


@snapshot.command()
@click.argument("name")
@click.option("--service-id", type=int, help="Only this service; without it, all.")
@asks
def save(session: Session, name: str, service_id: int | None) -> None:
    """Save the state; replaces a snapshot of the same name."""
    body = {"name": name} if service_id is None else {"name": name, "service_id": service_id}
    session.show(session.gateway.control("POST", "snapshots", body=body), _one)


@snapshot.command()
@click.argument("name")
@asks
def load(session: Session, name: str) -> None:
    """Restore a snapshot. What had five minutes left has five minutes left again."""
    session.show(session.gateway.control("POST", "snapshots", name, "restore"), _one)


@snapshot.command("list")
@click.option("--service-id", type=int, help="Only the snapshots of this service.")
@page_options
@asks
def list_(session: Session, /, service_id: int | None, limit: int, after: str | None) -> None:
    """List the snapshots, newest first."""
    query = page_query(limit, after, *service_query(service_id))
    session.show(session.gateway.control("GET", "snapshots", query=query), _lines)


@snapshot.command()
@click.argument("name")
@asks
def delete(session: Session, name: str) -> None:
    """Delete a snapshot."""
    session.show(session.gateway.control("DELETE", "snapshots", name), deleted)


def _one(document: dict[str, Any]) -> Iterator[str]:
    yield from _table([document])


def _lines(document: dict[str, Any]) -> Iterator[str]:
    if not document["snapshots"]:
        yield "no snapshots"
        return
    yield from _table(document["snapshots"])
    yield from more(document)


def _table(snapshots: list[dict[str, Any]]) -> Iterator[str]:
    rows = [
        [each["taken_at"], each["name"], _service_of(each), _counts(each)] for each in snapshots
    ]
    return table(("time", "name", "service", "records"), rows)


def _service_of(snapshot: dict[str, Any]) -> object:
    return "all" if snapshot["service_id"] is None else snapshot["service_id"]


def _counts(snapshot: dict[str, Any]) -> str:
    counts = [f"{count} {kind}" for kind, count in snapshot["records"].items() if count]
    return ", ".join(counts) or "nothing"
