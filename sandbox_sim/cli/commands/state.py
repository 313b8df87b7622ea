"""`sandbox-sim clock`, `reset` and `seed`: moves and stops time, empties and fills the state."""

import re
from collections.abc import Iterator
from typing import Any, Final

import click

from sandbox_sim.cli.session import Session, asks
from sandbox_sim.cli.tables import table

# Seconds. Each attempt on the way at a receiver that hangs takes 30 s of real time.
ADVANCE_TIMEOUT_S: Final = 600.0

_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)?")
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}


class Duration(click.ParamType[float]):
    """A duration in seconds, written `90`, `0.8s`, `5m` or `1h30m`."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds; wrong usage otherwise."""
        parts = _PART.findall(str(value))
        if not parts or "".join(number + unit for number, unit in parts) != value:
            self.fail(f"{value!r} is no duration such as 90, 0.8s, 5m or 1h30m", param, ctx)
        return float(sum(float(number) * _SECONDS[unit or "s"] for number, unit in parts))


@click.group()
def clock() -> None:
    """Gateway time, which is one for all services."""


@clock.command()
@asks
def show(session: Session, /) -> None:
    """Show gateway time, how far it was moved, and whether it is frozen."""
    session.show(session.gateway.control("GET", "clock"), _time)


@clock.command()
@click.argument("duration", type=Duration())
@asks
def advance(session: Session, /, duration: float) -> None:
    """Move time on and do everything that is due on the way. Returns when that is done."""
    body = {"seconds": duration}
    answer = session.gateway.control(
        "POST", "clock", "advance", body=body, timeout_s=ADVANCE_TIMEOUT_S
    )
    session.show(answer, _jobs_that_ran)


@clock.command()
@asks
def freeze(session: Session, /) -> None:
    """Stop gateway time; `advance` still moves it."""
    session.show(session.gateway.control("POST", "clock", "freeze"), _time)


@clock.command()
@asks
def resume(session: Session, /) -> None:
    """Let gateway time run on from where it stands."""
    session.show(session.gateway.control("POST", "clock", "resume"), _time)


@clock.command("reset")
@asks
def reset_clock(session: Session, /) -> None:
    """Bring gateway time back to the machine's. It runs from there.

    Exit code 1, with a list, if a payment, callback or SMS still waits that was created later than
    the machine's time.
    """
    session.show(session.gateway.control("POST", "clock", "reset"), _time)


@click.command()
@click.option("--service-id", type=int, help="Only this service; without it, all.")
@asks
def reset(session: Session, /, service_id: int | None) -> None:
    """Forget everything that was done, for one service or for all."""
    body = {} if service_id is None else {"service_id": service_id}
    session.show(session.gateway.control("POST", "reset", body=body), _what_was_reset)


@click.command()
@click.option("--seed", type=int, help="The number that the people are made from; by default 42.")
@click.option("--count", type=int, help="How many payments, and how many SMS; by default 20.")
@click.option("--service-id", type=int, help="The service that gets them; by default 55.")
@asks
def seed(session: Session, /, **chosen: int | None) -> None:
    """Fill a service with made-up people. The same seed makes the same people."""
    body = {name: value for name, value in chosen.items() if value is not None}
    session.show(session.gateway.control("POST", "seed", body=body), _people)


def _people(document: dict[str, Any]) -> Iterator[str]:
    what = f"{document['payments']} payments and {document['messages']} SMS"
    yield f"{what} for service {document['service_id']}, of seed {document['seed']}:"
    yield from document["fewer"]
    names = ("name", "customer_number", "nw")
    yield from table(names, [[each[name] for name in names] for each in document["people"]])


def _time(document: dict[str, Any]) -> Iterator[str]:
    now, moved = document["now"], document["shift_s"]
    if document["frozen"]:
        yield f"frozen at {now}"
    else:
        yield f"{now}, {moved:g} s from the machine's" if moved else now


def _jobs_that_ran(document: dict[str, Any]) -> Iterator[str]:
    for job in document["ran"]:
        yield f"{job['due_at']}  {job['kind']}  service {job['service_id']}  {job['subject']}"
    yield from _time(document)


def _what_was_reset(document: dict[str, Any]) -> Iterator[str]:
    service_id = document["service_id"]
    yield "all services begin anew" if service_id is None else f"service {service_id} begins anew"
