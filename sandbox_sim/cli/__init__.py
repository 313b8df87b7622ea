"""The command line, `sandbox-sim`. Each command is imported when it is called."""

import copy
import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, Final

import click
from click.core import ParameterSource

from sandbox_sim import __version__, import_without_gc

INTERRUPTED: Final = 130
_DEFAULT_ENDPOINT: Final = "http://127.0.0.1:8233"
# The module of each command; there the function has the name of the command.
_MODULES: Final = {
    **dict.fromkeys(("callbacks", "inbox", "requests", "sms", "transactions"), "commands.records"),
    **dict.fromkeys(("backup", "clock", "readyz", "reset", "seed", "snapshot"), "commands.state"),
    **dict.fromkeys(("faults", "overrides"), "commands.overrides_and_faults"),
    **dict.fromkeys(("explain", "openapi"), "commands.explain"),
    "certify": "commands.certify",
    "compare": "compare.command",
    "config": "commands.configuration",
    "demo": "commands.demo",
    "doctor": "commands.doctor",
    "ledger": "commands.ledger",
    "listen": "commands.listen",
    "networks": "commands.networks",
    "reconcile": "commands.reconcile",
    "serve": "serve.command",
    "trigger": "commands.trigger",
}

# These commands need no running gateway, so they have no options for its address.
_WITHOUT_GATEWAY: Final = frozenset(
    {*("compare", "config check", "config init", "demo", "explain", "openapi"), "serve"}
)
_OF_GATEWAY: Final = frozenset({"endpoint_url", "token"})


class _Commands(click.Group):
    """A group that imports a command when it is called; `--help` imports all.

    The options of the group may be given before or after the command.
    """

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of this name."""
        if cmd_name not in _MODULES:
            return None
        module = import_without_gc(f"{__name__}.{_MODULES[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        options = [each for each in self.params if isinstance(each, click.Option)]
        _add_options(command, cmd_name, [each for each in options if each.expose_value])
        return command

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the arguments. `--help` imports and prints here."""
        with _exit_codes():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Import and run the command."""
        with _exit_codes():
            return super().invoke(ctx)


@contextmanager
def _exit_codes() -> Iterator[None]:
    """Exit with 130 when the block is interrupted, where click would exit with 1.

    Raises `click.ClickException` if the output does not fit on the disk.
    """
    try:
        yield
    except (KeyboardInterrupt, RuntimeError) as error:
        # Python 3.11 raises a RuntimeError if Ctrl-C comes while a class is made.
        if KeyboardInterrupt in {type(error), type(error.__cause__)}:
            raise SystemExit(INTERRUPTED) from None
        raise
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise click.ClickException(f"cannot write the output: {error.strerror}") from None


def _add_options(command: click.Command, name: str, options: Sequence[click.Option]) -> None:
    """Add the options of the top group to a command and its subcommands.

    name: the full name of the command, without `sandbox-sim`.
    """
    if isinstance(command, click.Group):
        for below in command.commands.values():
            _add_options(below, f"{name} {below.name}", options)
    existing = {each.name for each in command.params}
    if name in _WITHOUT_GATEWAY:
        existing |= _OF_GATEWAY
    command.params += [_copy_for_command(each) for each in options if each.name not in existing]


def _copy_for_command(option: click.Option) -> click.Option:
    """Return a copy of the option for use after a command; it overrides the value given before."""
    copied = copy.copy(option)
    copied.default, copied.envvar, copied.expose_value = None, None, False
    copied.show_default = copied.show_envvar = False
    copied.callback = _store_in_group
    return copied


def _store_in_group(context: click.Context, option: click.Parameter, value: Any) -> None:
    name = option.name or ""
    if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
        context.obj[name] = value


# `get_command` imports the command in place of these.
_NOT_IMPORTED: Final = {name: click.Command(name) for name in _MODULES}


@click.group(
    cls=_Commands,
    commands=_NOT_IMPORTED,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.option(
    "--endpoint-url",
    default=_DEFAULT_ENDPOINT,
    envvar=["SANDBOX_SIM_ENDPOINT_URL", "SANDBOX_SIM_URL"],
    show_envvar=True,
    help="The running gateway that a command talks to.",
)
@click.option(
    "--token",
    envvar="SANDBOX_SIM_TOKEN",
    show_envvar=True,
    help="The control_token of that gateway, if it has one.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
@click.version_option(__version__, prog_name="sandbox-sim")
@click.pass_context
def main(context: click.Context, endpoint_url: str, token: str | None, as_json: bool) -> None:
    """A stand-in for a Ghanaian payment, airtime, bill and SMS gateway."""
    # Where the encoding is not UTF-8, a terminal or a file cannot have every character.
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    # Colour appears on terminals only, and never if NO_COLOR is set (https://no-color.org).
    context.color = False if os.environ.get("NO_COLOR") else None
    context.obj = {"endpoint_url": endpoint_url, "token": token, "as_json": as_json}
