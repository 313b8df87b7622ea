"""Sends random bodies to all operations of a server; each answer must have a valid shape.

At the end the server must still run, its log have no traceback, its pages be readable, no job have
failed, and all balances agree with the ledger.
"""

import asyncio
import time
from pathlib import Path
from random import Random
from typing import Final

from attack.fuzz import values
from attack.fuzz.afterwards import SETTINGS, Place, look_after
from attack.fuzz.findings import Report
from attack.servers import Server, serving
from attack.wire import KeptConnection, NoAnswer, request_bytes
from tests.kit.requests import shape_problem

_CONNECTIONS: Final = 4
# Seconds; a busy disk keeps a commit waiting.
_WITHIN_S: Final = 30.0


async def fuzz(place: Place, directory: Path, seed: int, seconds: float) -> Report:
    """Send random bodies for this many seconds."""
    report = Report(f"random bodies on {place.name}")
    log = directory / f"bodies-{place.name}.log"
    async with serving(log, *SETTINGS, store=place.store) as server:
        ends = time.monotonic() + seconds
        await asyncio.gather(
            *(
                _send(server, Random(f"{seed} {place.name} {number}"), ends, report)
                for number in range(_CONNECTIONS)
            )
        )
        await look_after(server, place, report)
    return report


async def _send(server: Server, random: Random, ends: float, report: Report) -> None:
    connection = KeptConnection(server.port)
    while time.monotonic() < ends and server.alive:
        path, body = values.request(random)
        sent = request_bytes(path, body, *values.content_type(random))
        report.tried += 1
        try:
            answer = await connection.send(sent, _WITHIN_S)
            problem = shape_problem(answer.status, answer.headers, answer.body, path)
        except NoAnswer as error:
            problem = f"no answer: {error}"
        if problem is not None:
            report.add(problem, sent)
    connection.close()
