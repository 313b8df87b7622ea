"""Runs the commands that need a gateway, against the gateway of a test."""

import json
from typing import Any

from click.testing import Result

from tests.cli.receivers import ask
from tests.conftest import Sandbox


async def on(sandbox: Sandbox, *words: object, **environment: str) -> Result:
    """Run a command on this gateway."""
    return await ask("--endpoint-url", sandbox.url, *words, **environment)


async def printed(sandbox: Sandbox, *words: object) -> list[str]:
    """The lines of a command that succeeds, without the line with both times below a list.

    The clock of a test is stopped, so a list ends with that line.
    """
    result = await on(sandbox, *words)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    return [line for line in lines if not line.startswith("gateway time is ")]


async def as_json(sandbox: Sandbox, *words: object) -> Any:
    """What the command prints with `--json`, parsed."""
    result = await on(sandbox, "--json", *words)
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


async def control(sandbox: Sandbox, path: str, body: Any = None) -> str:
    """The answer of the control API, as text."""
    method = "GET" if body is None else "POST"
    address = f"{sandbox.url}/_sandbox/{path}"
    async with sandbox.session.request(method, address, json=body) as answer:
        return await answer.text()


def columns(line: str) -> list[str]:
    """The cells of a table line."""
    return [cell.strip() for cell in line.split("  ") if cell.strip()]
