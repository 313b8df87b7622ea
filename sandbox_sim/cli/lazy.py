"""A group of commands whose modules are imported when they are asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Final

import click

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
        if cmd_name in self.later:
            module, _, name = self.later[cmd_name].partition(":")
            command: click.Command = getattr(import_module(module), name)
            return command
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click itself would end one that is interrupted with exit code 1."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
