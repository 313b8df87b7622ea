"""`sandbox-sim networks list | check | notifications | prove`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from sandbox_sim.cli.client import Session, with_session
from sandbox_sim.cli.options import Integer, config_option, set_option
from sandbox_sim.cli.tables import Json, fields, listing
from sandbox_sim.records.exchanges import NotificationState

# Seconds. The check of a network can take its `timeout_s`, which may be 300.
_TIMEOUT_S: Final = 330.0
_NO_NETWORKS: Final = "networks: the gateway runs without production"


@click.group()
def networks() -> None:
    """The networks of production."""


@networks.command(name="list")
@with_session
def list_(session: Session) -> None:
    """List the networks with their routes, breakers and open attempts."""
    session.request("GET", "networks", lines=_network_lines)


@networks.command()
@with_session
def check(session: Session) -> None:
    """Check whether each network is healthy. Exit 1 if one is not."""
    answer = session.request("POST", "networks", "check", timeout_s=_TIMEOUT_S, lines=_health_lines)
    if not all(each["health"]["ok"] for each in answer.document["networks"]):
        raise SystemExit(1)


@networks.command()
@click.argument("name")
@config_option
@set_option
@click.pass_obj
def prove(
    obj: dict[str, object], /, name: str, config_file: Path | None, settings: dict[str, str]
) -> None:
    """Test the tables of an http_json network on this machine.

    The contract suite runs against a simulated network that is built from the tables; nothing is
    sent to base_url. Exit 1 if a proof is disproved.
    """
    from sandbox_sim.cli.commands.network_proofs import run  # noqa: PLC0415 -- it is large

    raise SystemExit(run(name, config_file, settings, as_json=bool(obj["as_json"])))


@networks.command()
@click.option("--network", help="Only notifications of this network.")
@click.option(
    "--state",
    type=click.Choice([each.value for each in NotificationState]),
    help="Only notifications in this state; failed and refused ones need your attention.",
)
@click.option("--limit", type=Integer(1), default=20, help="How many.")
@with_session
def notifications(session: Session, network: str | None, state: str | None, limit: int) -> None:
    """List the stored notifications of networks, newest first."""
    query = [("network", network), ("state", state), ("limit", limit)]
    session.request("GET", "networks", "notifications", query=query, lines=_notification_lines)


def _notification_lines(document: Json) -> Iterator[str]:
    names = ("id", "time=received_at", "network", "state", "attempt=attempt_id", "note")
    return listing(document["notifications"], "notifications", fields(*names))


def _network_lines(document: Json) -> Iterator[str]:
    return listing(
        document["networks"],
        _NO_NETWORKS,
        {
            **fields("network=name", "adapter"),
            "breaker": lambda network: network["breaker"]["state"],
            **fields("open=open_attempts", "notifications"),
            "operations": lambda network: " ".join(network["operations"]),
            "routes": lambda network: "; ".join(map(_route, network["routes"])),
        },
    )


def _route(route: Json) -> str:
    """The text of a route, such as `collect payout, MTN`."""
    parts = (" ".join(route[name]) for name in ("operation", "nw") if route[name])
    return ", ".join(parts) or "all"


def _health_lines(document: Json) -> Iterator[str]:
    found = document["networks"]
    if not found:
        yield f"no {_NO_NETWORKS}"
    for each in found:
        word = "healthy" if each["health"]["ok"] else "not healthy"
        yield f"{each['name']} ({each['adapter']}): {word}: {each['health']['detail']}"
