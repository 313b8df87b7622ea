"""`sandbox-sim config check | show | init`."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click

from sandbox_sim.config import Settings, defaults
from sandbox_sim.config_loading import (
    ENV_PREFIX,
    NETWORK_PREFIX,
    ConfigError,
    Loaded,
    as_toml,
    load,
    no_such_setting,
)
from sandbox_sim.domain.clients import SANDBOX_CLIENT

# Variables that are not settings: options of commands, and variables of our tests.
_OPTIONS: Final = frozenset({"CLIENT_KEY", "CONFIG", "ENDPOINT_URL", "SECRET_KEY", "TOKEN"})
_TESTS: Final = frozenset({"REQUIRE", "TEST_POSTGRES"})

_HEAD = """\
# Every setting of sandbox_sim, with its default.
# Each is also SANDBOX_SIM_<NAME> in the environment and --set <name>=<value> on the command line;
# flag > environment > file > default. Remove the # from the settings that you change.
"""
_KEY, _SECRET = SANDBOX_CLIENT.client_key, SANDBOX_CLIENT.secret_key
_CREDENTIALS = f"""
# Credential sets. As soon as there is one, {_KEY}:{_SECRET} is no longer accepted.
# [[credentials]]
# client_key = "{_KEY}"
# secret_key = "{_SECRET}"
# mode = "S"                    # S sandbox, P production
# service_ids = [55, 56]        # may be left out: any service
# callback_profile = "flat"     # may be left out: the setting callback_profile
"""


def load_or_exit(config_file: Path | None, flags: Mapping[str, str]) -> Loaded:
    """Return the settings. If they are wrong, print why on stderr and exit with 1.

    Warns of environment variables that look like settings and are none.
    """
    for sentence in _unknown_variables():
        click.echo(f"warning: {sentence}", err=True)
    try:
        return load(config_file, flags)
    except ConfigError as error:
        click.echo(str(error), err=True)
        raise SystemExit(1) from None


def _unknown_variables() -> Iterator[str]:
    known = {*map(str.upper, Settings.model_fields), *_OPTIONS, *_TESTS}
    for variable in sorted(map(str.upper, os.environ)):
        name = variable.removeprefix(ENV_PREFIX)
        if name != variable and name not in known and not variable.startswith(NETWORK_PREFIX):
            yield no_such_setting(name, "environment", known, ENV_PREFIX)


def check(config_file: Path | None, flags: Mapping[str, str], *, as_json: bool) -> int:
    """Check the settings; return the exit code 0."""
    load_or_exit(config_file, flags)
    click.echo(json.dumps({"status": "ok"}) if as_json else "the settings are in order")
    return 0


def show(config_file: Path | None, flags: Mapping[str, str], *, as_json: bool) -> int:
    """Print every setting with its value and its origin."""
    loaded = load_or_exit(config_file, flags)
    rows = {
        name: {"value": value, "from": loaded.origins.get(name, "default")}
        for name, value in loaded.settings.model_dump(mode="json").items()
    }
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return 0
    for name, row in rows.items():
        click.echo(f"{name} = {json.dumps(row['value'])}  ({row['from']})")
    return 0


def init(file: Path) -> int:
    """Write the commented configuration; never overwrites a file. Returns the exit code."""
    if str(file) == "-":
        click.echo(commented(), nl=False)
        return 0
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(commented())
    except FileExistsError:
        click.echo(f"{file} is there already and was left as it is", err=True)
        return 1
    except OSError as error:
        click.echo(f"{file} cannot be written: {error.strerror}", err=True)
        return 1
    click.echo(f"wrote {file}; use it with: sandbox-sim serve --config {file}")
    return 0


def commented() -> str:
    """Return the file with every setting as a comment, so that it changes nothing as it is."""
    parts = [_HEAD]
    for name, value in defaults().items():
        if name != "credentials":
            shown = "" if value is None else as_toml(value)
            description = Settings.model_fields[name].description
            parts.append(f"\n# {description}\n# {name} = {shown}\n".replace("= \n", "=\n"))
    return "".join(parts) + _CREDENTIALS
