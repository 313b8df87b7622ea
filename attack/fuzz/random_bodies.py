"""Sends random bodies to all operations of a server; each answer must have a valid shape.

At the end the server must still run, its log have no traceback, its pages be readable, no job have
failed, and all balances agree with the ledger.
"""

from pathlib import Path
from random import Random

from attack.fuzz import values
from attack.fuzz.afterwards import SETTINGS, Place, look_after
from attack.fuzz.findings import Report
from attack.fuzz.sending import send
from attack.servers import serving
from attack.wire import Response, request_bytes
from tests.kit.requests import shape_problem


async def fuzz(place: Place, directory: Path, seed: int, seconds: float) -> Report:
    """Send random bodies for this many seconds."""
    report = Report(f"random bodies on {place.name}")
    log = directory / f"bodies-{place.name}.log"
    async with serving(log, *SETTINGS, store=place.store) as server:
        await send(server, report, f"{seed} {place.name}", seconds, _request, _problem_with)
        await look_after(server, place, report)
    return report


def _request(random: Random) -> tuple[str, bytes]:
    path, body = values.request(random)
    return path, request_bytes(path, body, *values.content_type(random))


def _problem_with(path: str, answer: Response) -> str | None:
    return shape_problem(answer.status, answer.headers, answer.body, path)
