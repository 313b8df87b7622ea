"""`sandbox-sim clock | reset | seed | snapshot | readyz`: time and state of a running gateway."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from sandbox_sim.cli import tables
from sandbox_sim.cli.client import RunningGateway, Session, Unreachable, with_session
from sandbox_sim.cli.options import DURATION, Query, list_options
from sandbox_sim.cli.record_commands import RecordView
from sandbox_sim.cli.tables import Json, deleted_line, fields
from sandbox_sim.values.redaction import printable

# Seconds. Each attempt at a receiver that does not answer takes 30 s, and a large file long.
_LONG_TIMEOUT_S: Final = 600.0

_READYZ: Final = "/_sandbox/readyz"
_READYZ_TIMEOUT_S: Final = 5.0


@click.group()
def clock() -> None:
    """Gateway time, which all services share."""


@clock.command()
@with_session
def show(session: Session, /) -> None:
    """Show gateway time, its difference from the machine's time, and whether it is frozen."""
    session.request("GET", "clock", lines=_time_line)


@clock.command()
@click.argument("duration", type=DURATION)
@with_session
def advance(session: Session, /, duration: float) -> None:
    """Move gateway time forward, run all jobs that become due, and wait until they are done."""
    given: dict[str, Any] = {"body": {"seconds": duration}, "timeout_s": _LONG_TIMEOUT_S}
    session.request("POST", "clock", "advance", **given, lines=_job_lines)


@clock.command()
@with_session
def freeze(session: Session, /) -> None:
    """Freeze gateway time; `advance` still moves it."""
    session.request("POST", "clock", "freeze", lines=_time_line)


@clock.command()
@with_session
def resume(session: Session, /) -> None:
    """Let gateway time run again, from the time at which it is frozen."""
    session.request("POST", "clock", "resume", lines=_time_line)


@clock.command("reset")
@with_session
def reset_clock(session: Session, /) -> None:
    """Set gateway time back to the machine's time, and let it run.

    Exit 1, with a list, if a payment, callback or SMS that was created after the machine's time is
    still waiting.
    """
    session.request("POST", "clock", "reset", lines=_time_line)


@click.command()
@click.option("--service-id", type=int, help="Only this service; without it, all.")
@with_session
def reset(session: Session, /, service_id: int | None) -> None:
    """Delete all records of one service or of all. Records of mode P are kept."""
    session.request("POST", "reset", body={"service_id": service_id}, lines=_reset_line)


@click.command()
@with_session
def backup(session: Session, /) -> None:
    """Copy the SQLite file of a running gateway.

    The copy is written to the same folder. Requests wait while it is written.
    """
    given: dict[str, Any] = {"body": {}, "timeout_s": _LONG_TIMEOUT_S}
    session.request(
        "POST", "backup", **given, lines=lambda copy: [f"{copy['path']} has {copy['bytes']} bytes"]
    )


@click.command()
@click.option("--seed", type=int, help="The seed of the random people; by default 42.")
@click.option("--count", type=int, help="How many payments, and how many SMS; by default 20.")
@click.option("--service-id", type=int, help="The service that gets the records; by default 55.")
@with_session
def seed(session: Session, /, **chosen: int | None) -> None:
    """Add payments and SMS of invented people to a service. The same seed gives the same people."""
    session.request("POST", "seed", body=chosen, lines=_people_lines)


def _people_lines(document: dict[str, Any]) -> Iterator[str]:
    what = f"{document['payments']} payments and {document['messages']} SMS"
    yield f"{what} for service {document['service_id']}, of seed {document['seed']}:"
    yield from document["fewer"]
    yield from tables.listing(document["people"], "people", fields("name", "customer_number", "nw"))


def _time_line(document: dict[str, Any]) -> Iterator[str]:
    # The clocks of a machine differ by microseconds; those are left out.
    now, moved = document["now"], round(document["shift_s"], 3)
    if document["frozen"]:
        yield f"frozen at {now}"
    else:
        yield f"{now}, {moved:.15g} s from the machine's time" if moved else now


def _job_lines(document: dict[str, Any]) -> Iterator[str]:
    for job in document["ran"]:
        yield f"{job['due_at']}  {job['kind']}  service {job['service_id']}  {job['subject']}"
    yield from _time_line(document)


def _reset_line(document: dict[str, Any]) -> Iterator[str]:
    service_id, kept = document["service_id"], " and ".join(document["kept"])
    which = "all services were" if service_id is None else f"service {service_id} was"
    yield f"{which} reset; {kept} are kept"


@click.group()
def snapshot() -> None:
    """Save the state of sandbox under a name, and restore it."""


@snapshot.command()
@click.argument("name")
@click.option("--service-id", type=int, help="Only this service; without it, all.")
@with_session
def save(session: Session, name: str, service_id: int | None) -> None:
    """Save the state; replaces a snapshot of the same name."""
    body = {"name": name, "service_id": service_id}
    session.request("POST", "snapshots", body=body, lines=_snapshot_line)


@snapshot.command()
@click.argument("name")
@with_session
def load(session: Session, name: str) -> None:
    """Restore a snapshot. A job that had five minutes left has five minutes left again."""
    session.request("POST", "snapshots", name, "restore", lines=_snapshot_line)


@snapshot.command("list")
@click.option("--service-id", type=int, help="Only the snapshots of this service.")
@list_options(where=False)
@with_session
def list_snapshots(session: Session, service_id: int | None, query: Query) -> None:
    """List the snapshots, newest first."""
    query = [*query, ("service_id", service_id)]
    session.request("GET", "snapshots", query=query, lines=_SNAPSHOTS.page)


@snapshot.command()
@click.argument("name")
@with_session
def delete(session: Session, name: str) -> None:
    """Delete a snapshot."""
    session.request("DELETE", "snapshots", name, lines=deleted_line)


def _snapshot_line(snapshot: Json) -> Iterator[str]:
    return _SNAPSHOTS.lines([snapshot])


def _service_of(snapshot: Json) -> object:
    return "all" if snapshot["service_id"] is None else snapshot["service_id"]


def _record_counts(snapshot: Json) -> str:
    counts = [f"{count} {kind}" for kind, count in snapshot["records"].items() if count]
    return ", ".join(counts) or "nothing"


_SNAPSHOTS: Final = RecordView(
    "snapshots",
    "snapshots",
    (),
    {**fields("time=taken_at", "name"), "service": _service_of, "records": _record_counts},
)


@click.command()
@click.pass_obj
def readyz(obj: Mapping[str, Any]) -> None:
    """Check whether a running gateway is ready. Exit 1 if not."""
    gateway = RunningGateway(obj["endpoint_url"])
    try:
        status = gateway.send("GET", _READYZ, {}, timeout_s=_READYZ_TIMEOUT_S).status
        problem = None if status == 200 else f"HTTP {status}"
    except Unreachable as error:
        problem = error.reason
    if problem is not None:
        click.echo(printable(f"not ready: {gateway.address}{_READYZ}: {problem}"), err=True)
        raise SystemExit(1)
    click.echo(json.dumps({"status": "ready"}) if obj["as_json"] else "ready")
