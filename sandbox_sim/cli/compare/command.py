"""`sandbox-sim compare`: compares another implementation of the interface with ours."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import click
from pydantic import SecretStr

from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.adapters.ids import RandomIds
from sandbox_sim.cli import config_option, set_option
from sandbox_sim.cli.address_option import address
from sandbox_sim.cli.client import WrongUsage
from sandbox_sim.cli.compare import report
from sandbox_sim.cli.compare.cases import Plan, plan
from sandbox_sim.cli.compare.settings_search import Findings, Observations, find
from sandbox_sim.cli.compare.sides import (
    NoAnswer,
    Side,
    client_session,
    observe_other,
    own_gateway,
)
from sandbox_sim.cli.credential_options import credential_options
from sandbox_sim.config import Settings
from sandbox_sim.config_credentials import Credentials
from sandbox_sim.config_loading import ConfigError, load
from sandbox_sim.domain.hosts import is_loopback

# What a configuration says about serving and not about the interface is left at its default.
_OF_SERVING: Final = frozenset(
    {
        *("base_path", "public_url", "workers", "control_token", "allowed_hosts", "log_level"),
        *("rate_limit_per_minute", "callback_hosts", "callback_rewrites", "callback_headers"),
    }
)


class _Other(NamedTuple):
    """The other side. `receive_at`: the address that leads it to our inbox, where it has one."""

    url: str
    client_key: str
    secret_key: str
    receive_at: str | None
    port: int
    timeout_s: float

    @property
    def is_local(self) -> bool:
        return is_loopback(urlsplit(self.url).hostname or "")


@click.command()
@click.argument("url", callback=address)
@credential_options
@click.option(
    "--service-id",
    "service_ids",
    type=click.IntRange(1),
    multiple=True,
    help="Use this service; may be repeated. By default each case has a new one.",
)
@click.option("--yes", is_flag=True, help="Send the requests to an address beyond this machine.")
@click.option(
    "--receive-at",
    callback=address,
    help="Address of a tunnel that leads to --port of this machine, for callbacks from beyond it.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port that receives callbacks."
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, 600),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait at most for callbacks and decisions.",
)
@config_option
@set_option
@click.pass_obj
def compare(
    obj: Mapping[str, object],
    /,
    *,
    url: str,
    client_key: str,
    secret_key: str,
    service_ids: tuple[int, ...],
    yes: bool,
    receive_at: str | None,
    port: int,
    timeout: float,
    config_file: Path | None,
    settings: dict[str, str],
) -> None:
    """Say where another implementation differs from ours.

    Sends the samples of every operation to both and compares the answers and callbacks, field by
    field. Names the settings that would make us agree. --config and --set change ours.

    Exit codes: 0 no difference, 1 differences, 2 the comparison could not be made.
    """
    other = _Other(url.rstrip("/"), client_key, secret_key, receive_at, port, timeout)
    run = 100_000 + int(RandomIds().record_id()[-8:], 16) % 900_000
    chosen = plan(run, service_ids)
    if not other.is_local and not yes:
        for line in report.requests(other.url, chosen):
            click.echo(line)
        raise WrongUsage("nothing was sent: --yes sends it")
    try:
        own = _own_settings(load(config_file, settings).settings, other)
        findings, remarks = asyncio.run(_compare(other, own, chosen))
    except (ConfigError, NoAnswer) as error:
        raise WrongUsage(str(error)) from None
    if obj["as_json"]:
        click.echo(json.dumps(report.document(other.url, chosen, findings, remarks), indent=2))
    else:
        for line in report.lines(other.url, chosen, findings, remarks):
            click.echo(line)
    raise SystemExit(1 if findings.differences else 0)


def _own_settings(settings: Settings, other: _Other) -> Settings:
    """Ours, with the credentials of the other side, so that its signatures can be checked."""
    defaults = Settings()
    credentials = Credentials(client_key=other.client_key, secret_key=SecretStr(other.secret_key))
    update: dict[str, Any] = {name: getattr(defaults, name) for name in _OF_SERVING}
    return settings.model_copy(update={**update, "credentials": [credentials]})


async def _compare(other: _Other, settings: Settings, chosen: Plan) -> tuple[Findings, list[str]]:
    receives = other.is_local or other.receive_at is not None
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(client_session())
        own = await stack.enter_async_context(own_gateway(settings, session, port=other.port))
        inbox = own.inbox("theirs", other.receive_at or "") if receives else None
        auth = (other.client_key, other.secret_key)
        side = Side(session, other.url, auth, SystemClock(), inbox)
        await _check_access(side, chosen)
        theirs = await observe_other(
            chosen, side, own, receives=receives, timeout_s=other.timeout_s
        )
        ours = await own.observe(chosen)

        async def run(changed: Mapping[str, Any], some: Plan) -> Observations:
            async with own_gateway(settings.model_copy(update=changed), session) as tried:
                return await tried.observe(some)

        findings = await find(chosen, settings, ours, theirs, run)
    remarks = [] if receives else ["callbacks: they cannot be received; see --receive-at"]
    return findings, remarks


async def _check_access(side: Side, chosen: Plan) -> None:
    """Raise `NoAnswer` where the other side refuses the credentials."""
    for each in chosen.cases:
        if each.case.name == "08-balance-success":
            reply = await side.first(each)
            if reply.status in {401, 403}:
                raise NoAnswer(
                    f"the other side refuses the credentials or the service: HTTP {reply.status}"
                )
