"""Clients that send nothing, or half a head, more than the server may have descriptors."""

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Final

from attack.plan import Plan
from attack.results import Result, at_most
from attack.servers import LIVEZ, serving
from attack.wire import NoAnswer, connected, request_bytes, seconds_to_answer

_DESCRIPTORS: Final = 256
_CLIENTS: Final = 400
_ANSWERED_WITHIN_S: Final = 1.0
_HALF_A_HEAD: Final = request_bytes("/make_payment", b"{}")[:40]


async def attack(plan: Plan) -> list[Result]:
    """Connect clients: half of them send nothing, the others half a head."""
    log = plan.directory / "idle.log"
    async with serving(log, descriptors=_DESCRIPTORS) as server, AsyncExitStack() as clients:
        with suppress(NoAnswer):  # the server accepts no more; the figures will show it
            for number in range(_CLIENTS):
                _, writer = await clients.enter_async_context(connected(server.port))
                if number % 2:
                    writer.write(_HALF_A_HEAD)
        waits = []
        for _ in range(plan.pick(5, 50)):
            waits.append(await seconds_to_answer(server.port, LIVEZ, within=3.0))
            await asyncio.sleep(0.05)
        name = f"{_CLIENTS:,} idle clients at ulimit -n {_DESCRIPTORS}:"
        return [
            at_most(f"{name} a new one waits", max(waits), _ANSWERED_WITHIN_S, "s"),
            at_most(f"{name} tracebacks in the log", server.tracebacks, 0),
        ]
