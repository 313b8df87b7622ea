"""Sends random bodies to all operations of a server; each answer must have a valid shape.

At the end the server must still run, its log have no traceback, and all balances agree with the
ledger.
"""

import asyncio
import time
from pathlib import Path
from random import Random
from typing import Final

from attack.fuzz import values
from attack.fuzz.findings import Report
from attack.fuzz.shape import problem_with
from attack.servers import Server, serving
from attack.wire import KeptConnection, NoAnswer, request_bytes

_CONNECTIONS: Final = 4
_SETTINGS: Final = (
    "balances=live",
    "settle_delay_ms=0",
    "sms_transition_ms=0",
    "card_auto_complete_ms=1",
    # Callbacks stay on this machine, and no name is resolved.
    'callback_hosts={"allow": ["nowhere.invalid"]}',
)


async def fuzz(store: str, directory: Path, seed: int, seconds: float) -> Report:
    """Send random bodies for this many seconds."""
    name = store.partition(":")[0]
    report = Report(f"random bodies on {name}")
    place = f"sqlite:{directory / 'fuzz.sqlite3'}" if name == "sqlite" else store
    async with serving(directory / f"bodies-{name}.log", *_SETTINGS, store=place) as server:
        ends = time.monotonic() + seconds
        await asyncio.gather(
            *(
                _send(server, Random(f"{seed} {name} {number}"), ends, report)
                for number in range(_CONNECTIONS)
            )
        )
        await _look_after(server, report)
    return report


async def _send(server: Server, random: Random, ends: float, report: Report) -> None:
    connection = KeptConnection(server.port)
    while time.monotonic() < ends and server.alive:
        path, body = values.request(random)
        sent = request_bytes(path, body)
        report.tried += 1
        try:
            problem = problem_with(await connection.send(sent), path)
        except NoAnswer as error:
            problem = f"no answer: {error}"
        if problem is not None:
            report.add(problem, sent)
    connection.close()


async def _look_after(server: Server, report: Report) -> None:
    """Check the server at the end."""
    if server.tracebacks:
        report.add(f"{server.tracebacks} tracebacks in {server.log}")
    try:
        ledger = await server.ask("/_sandbox/ledger")
    except NoAnswer as error:
        report.add(f"the server does not answer any more: {error}")
        return
    if ledger.status != 200 or ledger.json()["agrees"] is not True:
        report.add(f"the balances do not agree with the ledger: HTTP {ledger.status}")
