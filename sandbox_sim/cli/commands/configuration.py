"""`sandbox-sim config check | show | init | set | reset`."""

import functools
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import click

from sandbox_sim.cli.client import CommandFailed, Session, with_session
from sandbox_sim.cli.options import (
    Command,
    Pairs,
    config_option,
    parse_pairs,
    parse_value,
    set_option,
    with_options,
)
from sandbox_sim.settings.loading import (
    ENV_PREFIX,
    NETWORK_PREFIX,
    ConfigError,
    LoadedSettings,
    as_toml,
    load,
    no_such_setting,
)
from sandbox_sim.settings.schema import Settings, defaults
from sandbox_sim.values.clients import SANDBOX_CLIENT

# Known variables that are not settings: options of the commands, that of the pytest plugin, and
# those of our own tests.
_OPTION_KEYS: Final = frozenset(
    {"CLIENT_KEY", "CONFIG", "ENDPOINT_URL", "SECRET_KEY", "TOKEN", "URL"}
)
_TEST_KEYS: Final = frozenset({"REQUIRE", "TEST_POSTGRES"})

_HEAD = """\
# Every setting of sandbox_sim, with its default. Remove the # from the settings that you change.
# Each can also be set as SANDBOX_SIM_<NAME> in the environment, and as --set <name>=<value> on the
# command line. Precedence: command line, environment, file, default.
"""
_KEY, _SECRET = SANDBOX_CLIENT.client_key, SANDBOX_CLIENT.secret_key
_CREDENTIALS = f"""
# Credential sets. If you configure one, {_KEY}:{_SECRET} is no longer accepted.
# [[credentials]]
# client_key = "{_KEY}"
# secret_key = "{_SECRET}"
# mode = "S"                    # S sandbox, P production
# service_ids = [55, 56]        # optional; without it, any service
# callback_profile = "flat"     # optional; without it, the setting callback_profile
"""


def load_or_exit(
    config_file: Path | None, flags: Mapping[str, str], exit_code: int = 1
) -> LoadedSettings:
    """Return the settings. If they are invalid, print why on stderr and exit with this code.

    Warns about environment variables that look like settings but are unknown.
    """
    for sentence in _unknown_variables():
        click.echo(f"warning: {sentence}", err=True)
    try:
        return load(config_file, flags)
    except ConfigError as error:
        click.echo(str(error), err=True)
        raise SystemExit(exit_code) from None


def settings_options(
    *setting_names: str, exit_code: int = 1, **changed_defaults: str
) -> Callable[[Command], Command]:
    """Add `--config`, `--set` and an option for each of these settings.

    The command gets the settings as `loaded`. If they are invalid, it exits with `exit_code`.
    changed_defaults: those of the command, for the help.
    """
    shown_defaults = {**defaults(), **changed_defaults}

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(
            *args: Any, config_file: Path | None, settings: Mapping[str, str], **given: Any
        ) -> Any:
            flags = {name: given.pop(name) for name in setting_names}
            flags = {name: value for name, value in flags.items() if value is not None}
            loaded = load_or_exit(config_file, {**settings, **flags}, exit_code)
            return command(*args, loaded=loaded, **given)

        options = [_setting_option(name, shown_defaults[name]) for name in setting_names]
        return with_options(run, [*options, config_option, set_option])

    return decorate


def _setting_option(name: str, default: object) -> Callable[[Command], Command]:
    field = Settings.model_fields[name]
    kind: dict[str, Any] = {"is_flag": True, "flag_value": "true", "default": None}
    if get_origin(field.annotation) is Literal:
        kind = {"metavar": f"[{'|'.join(get_args(field.annotation))}]"}
    elif field.annotation is not bool:
        kind = {}
    kind["show_default"] = str(default) if default else False
    return click.option(f"--{name.replace('_', '-')}", help=field.description, **kind)


def _unknown_variables() -> Iterator[str]:
    known = {*map(str.upper, Settings.model_fields), *_OPTION_KEYS, *_TEST_KEYS}
    for variable in sorted(map(str.upper, os.environ)):
        name = variable.removeprefix(ENV_PREFIX)
        if name != variable and name not in known and not variable.startswith(NETWORK_PREFIX):
            yield no_such_setting(name, "environment", known, ENV_PREFIX)


@click.group()
def config() -> None:
    """Check, show, write or change the configuration."""


@config.command()
@settings_options()
@click.pass_obj
def check(obj: Mapping[str, Any], loaded: LoadedSettings) -> None:
    """Check whether the settings are valid. Exit 1 if not."""
    click.echo(json.dumps({"status": "ok"}) if obj["as_json"] else "the settings are valid")


@config.command()
@click.option(
    "--running",
    is_flag=True,
    help="Show the settings that can be changed in a running server, and which were changed.",
)
@settings_options()
@click.pass_obj
def show(obj: Mapping[str, Any], loaded: LoadedSettings, *, running: bool) -> None:
    """Print every setting and its source. Secrets are masked."""
    if running:
        _show_running()
        return
    rows = {
        name: {"value": value, "from": loaded.origins.get(name, "default")}
        for name, value in loaded.settings.model_dump(mode="json").items()
    }
    if obj["as_json"]:
        click.echo(json.dumps(rows, indent=2))
        return
    for name, row in rows.items():
        click.echo(f"{name} = {json.dumps(row['value'])}  ({row['from']})")


@config.command("set")
@click.argument("changes", nargs=-1, required=True, metavar="NAME=VALUE...", callback=parse_pairs)
@with_session
def set_settings(session: Session, /, changes: Pairs) -> None:
    """Change settings of a running server. If one is invalid, none is changed.

    Write lists and tables as JSON. A change applies until the server stops or `config reset`.
    """
    body = {name: parse_value(text, number=True) for name, text in changes}
    session.request("PATCH", "config", body=body, keep_null=True, lines=_changed_lines)


@config.command("reset")
@with_session
def reset_settings(session: Session, /) -> None:
    """Restore the settings that the running server was started with."""
    session.request("DELETE", "config", lines=_changed_lines)


def _changed_lines(document: dict[str, Any]) -> Iterator[str]:
    """A line for each setting that was changed."""
    rows = {name: row for name, row in document["settings"].items() if row["changed"]}
    yield from itertools.starmap(_running_line, rows.items())
    if not rows:
        yield "every setting is as it was configured"


@with_session
def _show_running(session: Session, /) -> None:
    def lines(document: dict[str, Any]) -> Iterator[str]:
        return itertools.starmap(_running_line, document["settings"].items())

    session.request("GET", "config", lines=lines)


def _running_line(name: str, row: Mapping[str, Any]) -> str:
    configured = json.dumps(row["configured"])
    origin = f"changed; configured: {configured}" if row["changed"] else "as configured"
    return f"{name} = {json.dumps(row['value'])}  ({origin})"


@config.command()
@click.argument("file", type=click.Path(path_type=Path), default="sandbox_sim.toml")
def init(file: Path) -> None:
    """Write a commented configuration file; - means stdout. An existing file is not changed."""
    if str(file) == "-":
        click.echo(commented_settings(), nl=False)
        return
    write(file, commented_settings())
    click.echo(f"wrote {file}; use it with: sandbox-sim serve --config {file}")


def write(file: Path, text: str, mode: str = "x") -> None:
    """Write a file, by default a new one. Raises `CommandFailed` if it cannot be written."""
    try:
        with file.open(mode, encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        raise CommandFailed(f"{file} already exists and was not changed") from None
    except OSError as error:
        raise CommandFailed(f"{file} cannot be written: {error.strerror}") from None


def commented_settings() -> str:
    """Return a configuration file in which every setting is a comment with its default."""
    parts = [_HEAD]
    for name, value in defaults().items():
        if name != "credentials":
            shown = "" if value is None else as_toml(value)
            description = Settings.model_fields[name].description
            parts.append(f"\n# {description}\n# {name} = {shown}\n".replace("= \n", "=\n"))
    return "".join(parts) + _CREDENTIALS
