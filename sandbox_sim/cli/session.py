"""The gateway that a command talks to, and how the command prints an answer."""

import functools
import json
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, NamedTuple, ParamSpec

import click

from sandbox_sim.cli.client import Answer, Gateway

P = ParamSpec("P")


class Session(NamedTuple):
    """One run of a command."""

    gateway: Gateway
    as_json: bool

    def show(self, answer: Answer, lines: Callable[[Any], Iterable[str]]) -> None:
        """Print the JSON of an answer, or without --json the lines that `lines` makes of it."""
        if self.as_json:
            click.echo(answer.text)
            return
        for line in lines(json.loads(answer.text)):
            click.echo(line)


def asks(command: Callable[Concatenate[Session, P], None]) -> Callable[P, None]:
    """Call a command with its session as the first argument."""

    @functools.wraps(command)
    def run(*args: P.args, **given: P.kwargs) -> None:
        chosen = click.get_current_context().obj
        gateway = Gateway(chosen["endpoint_url"], chosen["token"] or None)
        command(Session(gateway, chosen["as_json"]), *args, **given)

    return run
