"""A group of commands whose modules are imported when they are asked for.

Its own options may stand before or after the command: people do not ask which are global.
"""

import copy
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Final

import click
from click.core import ParameterSource

INTERRUPTED: Final = 130


class LazyGroup(click.Group):
    """`later` names, for a command, the module and the attribute that it is: `package.module:name`.

    So `serve` pays for no other command, and `--help`, which lists them all, loads them all.
    """

    later: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, loaded or not."""
        return sorted({*super().list_commands(ctx), *self.later})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported by now."""
        command = super().get_command(ctx, cmd_name)
        if cmd_name in self.later:
            module, _, name = self.later[cmd_name].partition(":")
            command = getattr(import_module(module), name)
        if command is not None:
            own = (each for each in self.params if isinstance(each, click.Option))
            _also_takes(command, [each for each in own if each.expose_value])
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click itself would end one that is interrupted with exit code 1."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None


def _also_takes(command: click.Command, options: Sequence[click.Option]) -> None:
    """Let a command, and those below it, take options of the group above all."""
    if isinstance(command, click.Group):
        for below in command.commands.values():
            _also_takes(below, options)
    taken = {each.name for each in command.params}
    command.params += [_for_the_group(each) for each in options if each.name not in taken]


def _for_the_group(option: click.Option) -> click.Option:
    """The option, said after a command: it replaces what was said before it."""
    repeated = copy.copy(option)
    repeated.default, repeated.envvar, repeated.expose_value = None, None, False
    repeated.show_default = repeated.show_envvar = False
    repeated.callback = _tell_the_group
    return repeated


def _tell_the_group(context: click.Context, option: click.Parameter, value: Any) -> None:
    name = option.name or ""
    if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
        context.obj[name] = value
