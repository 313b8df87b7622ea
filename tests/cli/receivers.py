"""Receivers for the doctor, and functions that run it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from click.testing import CliRunner, Result

from sandbox_sim.callbacks.bodies import check_signature
from sandbox_sim.cli import main

CHECKS = (
    "reachable",
    "tls",
    "successful",
    "repeated",
    "failed",
    "cancelled",
    "no_signature",
    "wrong_signature",
    "changed_body",
)

Handler = Callable[[web.Request], Awaitable[web.Response]]
# Port 9 discards what it gets: no gateway runs there, unless a test names another address.
NO_GATEWAY = {"SANDBOX_SIM_ENDPOINT_URL": "http://127.0.0.1:9"}
UNREACHABLE = "http://127.0.0.1:9/callback"
Listen = Callable[..., Awaitable[str]]


async def ask(*arguments: object, **environment: str) -> Result:
    """Run the command in a thread, so that the receivers of the test can answer it."""
    words = [str(argument) for argument in arguments]
    return await asyncio.to_thread(CliRunner().invoke, main, words, env=NO_GATEWAY | environment)


async def report(*arguments: object, **environment: str) -> tuple[Result, dict[str, Any]]:
    result = await ask("--json", "doctor", *arguments, **environment)
    document: dict[str, Any] = json.loads(result.stdout)
    return result, document


def verdicts(document: dict[str, Any]) -> dict[str, str]:
    """The verdict of each check, or its verdicts, if profiles differ."""
    found: dict[str, list[str]] = {}
    for row in document["checks"]:
        found.setdefault(row["check"], []).append(row["verdict"])
    return {check: " ".join(dict.fromkeys(each)) for check, each in found.items()}


def expected(**verdicts: str) -> dict[str, str]:
    """The verdicts on a healthy receiver on loopback, except for these."""
    return dict.fromkeys(CHECKS, "ok") | {"tls": "skipped"} | verdicts


async def is_signed(request: web.Request, *, secret_key: str = "sandbox_secret") -> bool:
    given = request.headers.get("X-Service-Signature")
    return check_signature(await request.read(), given, [secret_key]) == "valid"


async def healthy(request: web.Request) -> web.Response:
    """Answer as the interface requires: 401 to a wrong signature."""
    return web.Response(status=200 if await is_signed(request) else 401)


async def trusting(_request: web.Request) -> web.Response:
    return web.Response(text="thanks")
