"""Clients that connect and send nothing, or half a head, more of them than the server may have."""

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Final

from attack.plan import Plan
from attack.results import Result, at_most
from attack.servers import LIVEZ, serving
from attack.wire import NoAnswer, connected, request_bytes, seconds_to_answer

_DESCRIPTORS: Final = 256
_CLIENTS: Final = 400
_ANSWERED_WITHIN_S: Final = 1.0
_HALF_A_HEAD: Final = request_bytes("/make_payment", b"{}")[:40]


@dataclass(frozen=True)
class Measured:
    """The longest that a new client waited, while so many others were idle."""

    idle: int
    slowest_s: float
    tracebacks: int


def judge(measured: Measured) -> list[Result]:
    """Each figure beside its bound."""
    name = f"{measured.idle:,} idle clients at ulimit -n {_DESCRIPTORS}:"
    return [
        at_most(f"{name} a new one waits", measured.slowest_s, _ANSWERED_WITHIN_S, "s"),
        at_most(f"{name} tracebacks in the log", measured.tracebacks, 0),
    ]


async def attack(plan: Plan) -> list[Result]:
    """The same in every size of run."""
    return judge(await measure(plan))


async def measure(plan: Plan) -> Measured:
    """Half of the clients send nothing, the others half a head."""
    log = plan.directory / "idle.log"
    async with serving(log, descriptors=_DESCRIPTORS) as server, AsyncExitStack() as clients:
        with suppress(NoAnswer):  # no connection is made any more: new clients will show it
            for number in range(_CLIENTS):
                _, writer = await clients.enter_async_context(connected(server.port))
                if number % 2:
                    writer.write(_HALF_A_HEAD)
        waits = []
        for _ in range(plan.pick(5, 50)):
            waits.append(await seconds_to_answer(server.port, LIVEZ, within=3.0))
            await asyncio.sleep(0.05)
        return Measured(_CLIENTS, max(waits), server.tracebacks)
