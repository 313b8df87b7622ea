"""A group of commands that imports the module of a command when the command is called.

The options of the group may stand before or after the command.
"""

import copy
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Final

import click
from click.core import ParameterSource

INTERRUPTED: Final = 130


class LazyGroup(click.Group):
    """`later` maps the name of a command to its module and attribute: `package.module:name`.

    `serve` starts without importing the other commands; `--help` imports all of them.
    """

    later: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, imported or not."""
        return sorted({*super().list_commands(ctx), *self.later})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of this name."""
        command = super().get_command(ctx, cmd_name)
        if cmd_name in self.later:
            module, _, name = self.later[cmd_name].partition(":")
            command = getattr(import_module(module), name)
        if command is not None:
            own = (each for each in self.params if isinstance(each, click.Option))
            _add_options(command, [each for each in own if each.expose_value])
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit with 130 when it is interrupted, where click would exit with 1."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None


def _add_options(command: click.Command, options: Sequence[click.Option]) -> None:
    """Add the options of the top group to a command and to the commands below it."""
    if isinstance(command, click.Group):
        for below in command.commands.values():
            _add_options(below, options)
    taken = {each.name for each in command.params}
    command.params += [_copy_for_command(each) for each in options if each.name not in taken]


def _copy_for_command(option: click.Option) -> click.Option:
    """Return a copy of the option for use after a command; it replaces the value given before."""
    repeated = copy.copy(option)
    repeated.default, repeated.envvar, repeated.expose_value = None, None, False
    repeated.show_default = repeated.show_envvar = False
    repeated.callback = _store_in_group
    return repeated


def _store_in_group(context: click.Context, option: click.Parameter, value: Any) -> None:
    name = option.name or ""
    if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
        context.obj[name] = value
