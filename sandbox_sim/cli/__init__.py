"""The command line, `sandbox-sim`. Each command imports what it needs when it runs."""

import gc
from pathlib import Path

import click

from sandbox_sim import __version__

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
    help="Any setting, see `config show`; may be repeated.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--endpoint-url",
    default=DEFAULT_ENDPOINT,
    show_default=True,
    envvar="SANDBOX_SIM_ENDPOINT_URL",
    help="The running gateway that a command talks to.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
@click.version_option(__version__, prog_name="sandbox-sim")
@click.pass_context
def main(context: click.Context, endpoint_url: str, as_json: bool) -> None:
    """A stand-in for a Ghanaian payment, airtime, bill and SMS gateway."""
    context.obj = {"endpoint_url": endpoint_url, "as_json": as_json}


@main.command()
@click.option("--host", help="Address to listen on.")
@click.option("--port", help="Port to listen on; 0 picks a free one.")
@config_option
@click.option(
    "--store",
    help="Where the state lives: sqlite:PATH, memory: or postgresql://USER@HOST/DATABASE.",
)
@click.option("--workers", help="Processes that serve the port; several need a Postgres store.")
@click.option("--log-level", help="debug, info, warning or error.")
@click.option("--log-format", help="text or json.")
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
    gc.disable()  # nothing loaded from here on is garbage; a running gateway turns it on again
    try:
        from sandbox_sim.cli.serve import run

        code = run(config_file, {**settings, **given}, as_json=bool(obj["as_json"]))
    finally:
        gc.enable()
    raise SystemExit(code)


@main.command()
@click.pass_obj
def readyz(obj: dict[str, object]) -> None:
    """Ask a running gateway whether it is ready; exit 1 if not."""
    from sandbox_sim.cli.health import run

    raise SystemExit(run(str(obj["endpoint_url"])))


@main.group()
def config() -> None:
    """Check, show or write the configuration."""


@config.command()
@config_option
@set_option
def check(config_file: Path | None, settings: dict[str, str]) -> None:
    """Say whether the settings are in order; exit 1 if not."""
    from sandbox_sim.cli import configuration

    raise SystemExit(configuration.check(config_file, settings))


@config.command()
@config_option
@set_option
@click.pass_obj
def show(obj: dict[str, object], config_file: Path | None, settings: dict[str, str]) -> None:
    """Print every setting with the place that it came from; secrets are masked."""
    from sandbox_sim.cli import configuration

    raise SystemExit(configuration.show(config_file, settings, as_json=bool(obj["as_json"])))


@config.command()
@click.argument("file", type=click.Path(path_type=Path), default="sandbox_sim.toml")
def init(file: Path) -> None:
    """Write a commented configuration file; - for stdout."""
    from sandbox_sim.cli import configuration

    raise SystemExit(configuration.init(file))
