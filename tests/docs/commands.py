"""Runs the commands of a page against a gateway of the test, and compares what they print."""

import asyncio
import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from aiohttp import ClientResponse
from click.testing import CliRunner

from sandbox_sim.cli import main
from tests.conftest import Sandbox, basic

ADDRESS: Final = "http://127.0.0.1:8233"
# The parts that differ from run to run.
VARYING: Final = re.compile(
    r"127\.0\.0\.1:[0-9]+|(?<=sandbox_sim/)[0-9.]+|2[0-9]{3}-[0-9-]{5}[T ][0-9:.]+Z?"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b|\b[0-9]{11}\b|(?:DOCTOR|TRIGGER)-[0-9a-f]+"
    r"|[0-9]+(?: to [0-9]+)? ms\b|(?<=/pay/)[\w-]{22}|(?<=\"accept-encoding\": \")[^\"]+"
    r"|(?<=\"(?:port)\": )[0-9]+|(?<=\"pid\": )[0-9]+|^[0-9:]{8} (?=[A-Z])|\[[0-9a-f]{8}-[0-9]+\]",
    re.MULTILINE,
)
_SKIPPED_HEADERS: Final = ("Date: ", "Server: ", "X-Sandbox-Request-Id: ")


async def sent(sandbox: Sandbox, words: Sequence[str]) -> tuple[ClientResponse, str]:
    """The answer to the request of a curl command, and its body."""
    (address,) = (word for word in words if word.startswith(ADDRESS))
    options = dict(pairwise(words))
    data = options.get("-d", "").replace(ADDRESS, sandbox.url)
    headers = {"User-Agent": "curl/8"}
    if "-H" in options:
        name, _, value = options["-H"].partition(": ")
        headers[name] = value
    if "-u" in options:
        headers["Authorization"] = basic(*options["-u"].split(":"))
    method = options.get("-X") or ("POST" if data else "GET")
    url = address.replace(ADDRESS, sandbox.url)
    async with sandbox.session.request(method, url, data=data or None, headers=headers) as answer:
        return answer, await answer.text()


async def curl(sandbox: Sandbox, words: Sequence[str]) -> str:
    """What curl prints. With -i the status line and the headers come before the body."""
    words = words[: words.index("|")] if "|" in words else words
    answer, body = await sent(sandbox, words)
    assert answer.ok, f"{' '.join(words)}: HTTP {answer.status}: {body}"
    head = [f"HTTP/1.1 {answer.status} {answer.reason}"]
    head += [f"{name}: {value}" for name, value in answer.headers.items()]
    return "\n".join([*head, "", body]) if "-i" in words else body


async def sandbox_sim(sandbox: Sandbox, words: Sequence[str], exit_code: int = 0) -> str:
    """What `sandbox-sim` prints on stdout and stderr. It runs in its own thread."""
    environment = {"SANDBOX_SIM_ENDPOINT_URL": sandbox.url, "SANDBOX_SIM_TOKEN": None}
    typed = [word.replace(ADDRESS, sandbox.url) for word in words]
    result = await asyncio.to_thread(CliRunner().invoke, main, typed, env=environment)
    assert result.exit_code == exit_code, f"{' '.join(words)}: {result.output}"
    return result.output


def shape(output: str) -> list[str]:
    """An output without the parts that differ from run to run.

    Headers are sorted, and each member of a JSON object has its own line.
    """
    *head, body = output.strip().split("\n\n") if output.startswith("HTTP/") else [output.strip()]
    kept = [line for line in "\n".join(head).splitlines() if not line.startswith(_SKIPPED_HEADERS)]
    lines = _members(body) if body.startswith(("{", "[")) else body.splitlines()
    return [" ".join(VARYING.sub("*", line).split()) for line in sorted(kept) + lines]


def _members(body: str) -> list[str]:
    return json.dumps(json.loads(body), ensure_ascii=False, indent=1).splitlines()
