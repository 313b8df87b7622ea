"""`sandbox-sim networks list | check`."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from sandbox_sim.cli.session import Session, asks
from sandbox_sim.cli.tables import printable, table

# Seconds: a network that does not answer takes as long as its `timeout_s`, which may be 300.
_TIMEOUT_S: Final = 330.0
_NONE: Final = "no networks: the gateway runs without production"


@click.group()
def networks() -> None:
    """The networks of production."""


@networks.command(name="list")
@asks
def list_(session: Session) -> None:
    """List the networks with routes, breakers and open attempts."""
    session.show(session.gateway.control("GET", "networks"), _lines)


@networks.command()
@asks
def check(session: Session) -> None:
    """Ask each network whether it can be reached. Exit 1 if one cannot."""
    answer = session.gateway.control("POST", "networks", "check", timeout_s=_TIMEOUT_S)
    session.show(answer, _checked)
    if not all(each["health"]["ok"] for each in json.loads(answer.text)["networks"]):
        raise SystemExit(1)


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    found = document["networks"]
    if not found:
        yield _NONE
        return
    headings = ("network", "adapter", "breaker", "open", "notifications", "operations", "routes")
    yield from table(headings, [_row(each) for each in found])


def _row(network: Mapping[str, Any]) -> tuple[object, ...]:
    return (
        network["name"],
        network["adapter"],
        network["breaker"]["state"],
        network["open_attempts"],
        network["notifications"],
        " ".join(network["operations"]),
        "; ".join(map(_route, network["routes"])),
    )


def _route(route: Mapping[str, Any]) -> str:
    """A route in words, such as `collect payout, MTN`."""
    parts = (" ".join(route[name]) for name in ("operation", "nw") if route[name])
    return ", ".join(parts) or "all"


def _checked(document: Mapping[str, Any]) -> Iterator[str]:
    found = document["networks"]
    if not found:
        yield _NONE
    for each in found:
        word = "reached" if each["health"]["ok"] else "not reached"
        yield printable(f"{each['name']} ({each['adapter']}): {word}: {each['health']['detail']}")
