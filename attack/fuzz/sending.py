"""Sends random requests to a server over several connections, until a time is over."""

import asyncio
import time
from collections.abc import Callable
from random import Random
from typing import Final

from attack.fuzz.findings import Report
from attack.servers import Server
from attack.wire import KeptConnection, NoAnswer, Response

_CONNECTIONS: Final = 4
# Seconds; a busy disk keeps a commit waiting.
_WITHIN_S: Final = 30.0


async def send(
    server: Server,
    report: Report,
    seed: str,
    seconds: float,
    request: Callable[[Random], tuple[str, bytes]],
    problem_with: Callable[[str, Response], str | None],
) -> None:
    """Send, and report the problems.

    request: makes one, with the path that it is for. problem_with: what is wrong with its answer.
    """
    ends = time.monotonic() + seconds

    async def work(random: Random) -> None:
        connection = KeptConnection(server.port)
        while time.monotonic() < ends and server.alive:
            path, sent = request(random)
            report.tried += 1
            try:
                problem = problem_with(path, await _answer(connection, sent))
            except NoAnswer as error:
                problem = f"no answer: {error}"
            if problem is not None:
                report.add(f"{path}: {problem}", sent)
        connection.close()

    await asyncio.gather(*(work(Random(f"{seed} {n}")) for n in range(_CONNECTIONS)))


async def _answer(connection: KeptConnection, sent: bytes) -> Response:
    """The answer; one that comes before the whole request is read can be lost by a reset."""
    try:
        return await connection.send(sent, _WITHIN_S)
    except NoAnswer:
        return await connection.send(sent, _WITHIN_S)


def server_error(_path: str, answer: Response) -> str | None:
    """The problem where an answer is an HTTP 5xx."""
    if answer.status < 500:
        return None
    return f"HTTP status {answer.status}: {answer.body[:200]!r}"
