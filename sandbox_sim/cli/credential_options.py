"""The options `--client-key` and `--secret-key` of commands that send requests as a client."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from sandbox_sim.domain.clients import SANDBOX_CLIENT

F = TypeVar("F", bound=Callable[..., Any])


def credential_options(command: F) -> F:
    """Add both options; by default they name the client that exists without a configuration."""
    for name, default in (
        ("secret_key", SANDBOX_CLIENT.secret_key),
        ("client_key", SANDBOX_CLIENT.client_key),
    ):
        command = click.option(
            f"--{name.replace('_', '-')}",
            default=default,
            show_default=True,
            envvar=f"SANDBOX_SIM_{name.upper()}",
            show_envvar=True,
        )(command)
    return command
