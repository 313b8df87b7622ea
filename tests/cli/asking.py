"""The commands that ask a running gateway, sent to the gateway of a test."""

import json
from typing import Any

from click.testing import Result

from tests.cli.receivers import ask
from tests.conftest import Sandbox


async def on(sandbox: Sandbox, *words: object, **environment: str) -> Result:
    """A command on this gateway."""
    return await ask("--endpoint-url", sandbox.url, *words, **environment)


async def printed(sandbox: Sandbox, *words: object) -> list[str]:
    """The lines of a command that succeeds, but for the one below a list with both times.

    The clock of a test stands still, so that line is there.
    """
    result = await on(sandbox, *words)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    return [line for line in lines if not line.startswith("gateway time is ")]


async def as_json(sandbox: Sandbox, *words: object) -> Any:
    """What it prints with `--json`."""
    result = await on(sandbox, "--json", *words)
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


async def control(sandbox: Sandbox, path: str, body: Any = None) -> str:
    """What the control API answers, as it came."""
    method = "GET" if body is None else "POST"
    address = f"{sandbox.url}/_sandbox/{path}"
    async with sandbox.session.request(method, address, json=body) as answer:
        return await answer.text()


def columns(line: str) -> list[str]:
    """The cells of a line of a table."""
    return [cell.strip() for cell in line.split("  ") if cell.strip()]
