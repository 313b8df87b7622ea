"""What a command has that asks a running gateway: the gateway, and how to tell what it said."""

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

    def tell(self, answer: Answer, lines: Callable[[Any], Iterable[str]]) -> None:
        """Print an answer: its JSON as it came, or for people the lines made of it."""
        if self.as_json:
            click.echo(answer.text)
            return
        for line in lines(json.loads(answer.text)):
            click.echo(line)


def asks(command: Callable[Concatenate[Session, P], None]) -> Callable[P, None]:
    """Hands a command its session."""

    @functools.wraps(command)
    def run(*args: P.args, **given: P.kwargs) -> None:
        chosen = click.get_current_context().obj
        gateway = Gateway(chosen["endpoint_url"], chosen["token"] or None)
        command(Session(gateway, chosen["as_json"]), *args, **given)

    return run
