"""The command line, `sandbox-sim`. Each command imports its modules when it runs."""

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import click

from sandbox_sim import __version__
from sandbox_sim.cli.address_option import address
from sandbox_sim.cli.lazy_commands import LazyGroup

if TYPE_CHECKING:
    from sandbox_sim.domain.callbacks.callback_bodies import Profile

DEFAULT_ENDPOINT = "http://127.0.0.1:8233"


def _settings(
    _context: click.Context, _param: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise click.BadParameter(f"{pair} is not of the form name=value")
    return dict(pair.split("=", 1) for pair in pairs)


config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    envvar="SANDBOX_SIM_CONFIG",
    help="TOML file with settings.",
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_settings,
    help="Any setting of `config show`; may be repeated.",
)


class _Commands(LazyGroup):
    """The commands that talk to a gateway are in modules of their own; the others are below."""

    later: ClassVar = {
        "callbacks": "sandbox_sim.cli.commands.records:callbacks",
        "clock": "sandbox_sim.cli.commands.state:clock",
        "compare": "sandbox_sim.cli.compare.command:compare",
        "demo": "sandbox_sim.cli.commands.demo:demo",
        "explain": "sandbox_sim.cli.commands.explain:explain",
        "faults": "sandbox_sim.cli.commands.faults:faults",
        "inbox": "sandbox_sim.cli.commands.inbox:inbox",
        "ledger": "sandbox_sim.cli.commands.ledger:ledger",
        "reconcile": "sandbox_sim.cli.commands.reconcile:reconcile",
        "networks": "sandbox_sim.cli.commands.networks:networks",
        "openapi": "sandbox_sim.cli.commands.openapi:openapi",
        "overrides": "sandbox_sim.cli.commands.overrides:overrides",
        "requests": "sandbox_sim.cli.commands.records:requests",
        "reset": "sandbox_sim.cli.commands.state:reset",
        "seed": "sandbox_sim.cli.commands.state:seed",
        "sms": "sandbox_sim.cli.commands.records:sms",
        "snapshot": "sandbox_sim.cli.commands.snapshots:snapshot",
        "transactions": "sandbox_sim.cli.commands.records:transactions",
        "trigger": "sandbox_sim.cli.commands.trigger:trigger",
    }


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--endpoint-url",
    default=DEFAULT_ENDPOINT,
    show_default=True,
    envvar="SANDBOX_SIM_ENDPOINT_URL",
    help="The running gateway that a command talks to.",
)
@click.option(
    "--token",
    envvar="SANDBOX_SIM_TOKEN",
    show_envvar=True,
    help="The control_token of that gateway, where it has one.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
@click.version_option(__version__, prog_name="sandbox-sim")
@click.pass_context
def main(context: click.Context, endpoint_url: str, token: str | None, as_json: bool) -> None:
    """A stand-in for a Ghanaian payment, airtime, bill and SMS gateway."""
    # Colour appears on terminals only, and never if NO_COLOR is set (https://no-color.org).
    context.color = False if os.environ.get("NO_COLOR") else None
    context.obj = {"endpoint_url": endpoint_url, "token": token, "as_json": as_json}


@main.command()
@click.option("--host", help="Address to listen on.")
@click.option("--port", help="Port to listen on; 0 picks a free one.")
@config_option
@click.option(
    "--store",
    help="Where the state lives: sqlite:PATH, memory: or postgresql://USER@HOST/DATABASE.",
)
@click.option(
    "--production",
    flag_value="true",
    default=None,
    help="Credentials of mode P work: their payments go to networks.",
)
@click.option("--cert", help="PEM file with the certificate; with --key, HTTPS only.")
@click.option("--key", help="PEM file with the private key of --cert.")
@click.option(
    "--tls",
    is_flag=True,
    flag_value="true",
    default=None,
    help="HTTPS with a certificate of this machine's own authority, for development.",
)
@click.option("--workers", help="Processes that serve the port; several need a Postgres store.")
@click.option(
    "--quiet",
    is_flag=True,
    flag_value="true",
    default=None,
    help="No log lines about requests and callbacks that went well.",
)
@click.option("--log-level", help="debug, info, warning or error.")
@click.option("--log-format", help="text or json.")
@click.option(
    "--lenient",
    is_flag=True,
    flag_value="true",
    default=None,
    help="Take what real clients need and the interface does not promise.",
)
@set_option
@click.pass_obj
def serve(
    obj: dict[str, object],
    /,
    config_file: Path | None,
    settings: dict[str, str],
    **flags: str | None,
) -> None:
    """Run the gateway."""
    given = {name: value for name, value in flags.items() if value is not None}
    gc.disable()  # imports leave no garbage; a running gateway turns it on again
    try:
        from sandbox_sim.cli.serve.command import run

        code = run(config_file, {**settings, **given}, as_json=bool(obj["as_json"]))
    finally:
        gc.enable()
    raise SystemExit(code)


@main.command()
@click.pass_obj
def readyz(obj: dict[str, object]) -> None:
    """Ask a running gateway whether it is ready. Exits with 1 if not."""
    from sandbox_sim.cli.commands.health import run

    raise SystemExit(run(str(obj["endpoint_url"]), as_json=bool(obj["as_json"])))


def _secret_key(_context: click.Context, _param: click.Parameter, key: str | None) -> str | None:
    if key is not None and not key:
        raise click.BadParameter("must not be empty")
    return key


def _profiles(
    _context: click.Context, _param: click.Parameter, names: tuple[str, ...]
) -> tuple["Profile", ...]:
    from sandbox_sim.domain.callbacks.callback_bodies import Profile

    for name in names:
        if name not in set(Profile):
            raise click.BadParameter(f"{name} is none of {', '.join(Profile)}")
    return tuple(dict.fromkeys(map(Profile, names)))


def _order_command(
    _context: click.Context, param: click.Parameter, command: str | None
) -> str | None:
    from sandbox_sim.cli.order_commands import PLACEHOLDERS

    if command is not None and not any(each in command for each in PLACEHOLDERS):
        raise click.BadParameter(f"must contain {' or '.join(PLACEHOLDERS)}")
    if command is not None and param.name == "order" and not _context.params.get("paid"):
        raise click.BadParameter("goes with --paid")
    return command


def _timeout(
    _context: click.Context, _param: click.Parameter, seconds: float | None
) -> float | None:
    from sandbox_sim.config import A_DAY_S

    if seconds is not None and not 0 < seconds <= A_DAY_S:
        raise click.BadParameter(f"must be more than 0 and at most {A_DAY_S} seconds")
    return seconds


@main.command()
@click.argument("url", callback=address)
@click.option(
    "--secret-key",
    envvar="SANDBOX_SIM_SECRET_KEY",
    show_envvar=True,
    callback=_secret_key,
    help="Sign with this key; by default with that of the first credential set.",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    metavar="NAME",
    callback=_profiles,
    help="Send and judge only this body: trans, trans_bare, flat, event or superset; may be "
    "repeated.",
)
@click.option(
    "--paid",
    metavar="COMMAND",
    is_eager=True,
    callback=_order_command,
    help="A command that exits with 0 if the order of {reference} or {transaction_id} counts as "
    "paid. Finds out which profiles work.",
)
@click.option(
    "--order",
    metavar="COMMAND",
    callback=_order_command,
    help="With --paid: a command that creates the order of {reference} before its callback.",
)
@click.option(
    "--timeout",
    type=float,
    metavar="SECONDS",
    callback=_timeout,
    help="How long the receiver has to answer; by default the setting callback_timeout_s.",
)
@config_option
@click.pass_obj
def doctor(
    obj: dict[str, object],
    /,
    url: str,
    config_file: Path | None,
    secret_key: str | None,
    profiles: tuple["Profile", ...],
    timeout: float | None,
    paid: str | None,
    order: str | None,
) -> None:
    r"""Say what a receiver of callbacks does wrong. Exit 1 if anything.

    It gets every body there is, genuine and forged, once and twice, of successful, failed and
    cancelled payments whose ids begin with DOCTOR-. No gateway has to run. The profile that this
    configuration sends is judged; about the others there are notes.

    \b
    A receiver that                    needs
      compares trans_status with 000   callback_profile = trans_bare
      reads transaction_id and status  callback_profile = flat
    If you are unsure, try             callback_profile = superset
    """
    from sandbox_sim.cli.commands.doctor import run

    code = run(
        url,
        config_file,
        secret_key=secret_key,
        profiles=profiles,
        timeout=timeout,
        paid=paid,
        order=order,
        as_json=bool(obj["as_json"]),
    )
    raise SystemExit(code)


@main.group()
def config() -> None:
    """Check, show or write the configuration."""


@config.command()
@config_option
@set_option
@click.pass_obj
def check(obj: dict[str, object], config_file: Path | None, settings: dict[str, str]) -> None:
    """Check whether the settings are valid; exit with 1 if not."""
    from sandbox_sim.cli.commands import configuration

    raise SystemExit(configuration.check(config_file, settings, as_json=bool(obj["as_json"])))


@config.command()
@config_option
@set_option
@click.pass_obj
def show(obj: dict[str, object], config_file: Path | None, settings: dict[str, str]) -> None:
    """Print every setting and where it came from. Secrets are masked."""
    from sandbox_sim.cli.commands import configuration

    raise SystemExit(configuration.show(config_file, settings, as_json=bool(obj["as_json"])))


@config.command()
@click.argument("file", type=click.Path(path_type=Path), default="sandbox_sim.toml")
def init(file: Path) -> None:
    """Write a commented configuration file; - means stdout."""
    from sandbox_sim.cli.commands import configuration

    raise SystemExit(configuration.init(file))
