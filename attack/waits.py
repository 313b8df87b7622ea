"""How much slower open waits make a payment: two servers with the same records."""

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from statistics import median
from typing import Final

from attack.load import send_all
from attack.plan import Plan
from attack.results import Result, at_most
from attack.servers import Server, serving
from attack.wire import KeptConnection, NoAnswer, connected, read_response, request_bytes
from tests.kit.requests import collection

_RATIO: Final = 1.5
_ROUNDS: Final = 3
# Seconds. A payment that takes longer counts as this long.
_LONGEST_S: Final = 3.0
# No payment is settled, so the servers do nothing else.
_SETTLE_LATER: Final = "settle_delay_ms=86400000"


async def attack(plan: Plan) -> list[Result]:
    """Measure with one waiter, with a hundred, and with some that have hung up."""
    records = plan.pick(2_500, 100_000)
    seconds = plan.pick(1.5, 10.0)
    logs = plan.directory / "waited.log", plan.directory / "free.log"
    results = []
    async with (
        serving(logs[0], _SETTLE_LATER) as waited,
        serving(logs[1], _SETTLE_LATER) as free,
    ):
        await asyncio.gather(_fill(waited, records), _fill(free, records))
        for count, plural in ((1, "requests"), (100, "transactions")):
            async with AsyncExitStack() as opened:
                await _open(waited, count, plural, opened)
                name = f"{count} open waits on {plural}, {records:,} records"
                results.append(await _compare(waited, free, name, seconds))
        gone = 300
        async with AsyncExitStack() as opened:
            await _open(waited, gone, "requests", opened)
        results.append(await _compare(waited, free, f"after {gone} waiters hung up", seconds))
    return results


async def _fill(server: Server, records: int) -> None:
    bodies = (collection(f"fill-{number}") for number in range(records))
    await send_all(server.port, (request_bytes("/make_payment", body) for body in bodies))


async def _open(server: Server, count: int, plural: str, opened: AsyncExitStack) -> None:
    """Open this many waits, and return when each has searched once: a later wait has its answer.

    If the server does not answer in time, the figures show it.
    """
    with suppress(NoAnswer):
        for _ in range(count):
            _, writer = await opened.enter_async_context(connected(server.port))
            writer.write(_wait(plural, 600))
        async with connected(server.port) as (reader, writer):
            writer.write(_wait(plural, 0))
            await read_response(reader, within=_LONGEST_S)


def _wait(plural: str, timeout_s: float) -> bytes:
    match = {"service_id": 55, "transaction_id": "never"}
    return request_bytes(f"/_sandbox/{plural}/wait", {"match": match, "timeout_s": timeout_s})


async def _compare(waited: Server, free: Server, what: str, seconds: float) -> Result:
    """Compare; repeat if the ratio is above the bound.

    A busy machine exceeds it sometimes, a server that searches for its waiters every time.
    """
    for _ in range(_ROUNDS):
        result = await _one_round(waited, free, what, seconds)
        if result.holds:
            break
    return result


async def _one_round(waited: Server, free: Server, what: str, seconds: float) -> Result:
    """Send a payment to each server in turn, so the load of the machine is the same for both."""
    times: tuple[list[float], list[float]] = ([], [])
    connections = [KeptConnection(server.port) for server in (waited, free)]
    ends = time.monotonic() + seconds
    number = 0
    while time.monotonic() < ends or not number:
        number += 1
        for connection, spent in zip(connections, times, strict=True):
            spent.append(await _pay(connection, f"{what} {number}"))
    for connection in connections:
        connection.close()
    beside, without = median(times[0]), median(times[1])
    figures = f"({beside * 1000:.2f} ms against {without * 1000:.2f} ms)"
    name = f"{what}: a payment takes, times that without, {figures}"
    return at_most(name, beside / without, _RATIO)


async def _pay(connection: KeptConnection, name: str) -> float:
    """Seconds that a payment takes; `_LONGEST_S` if no answer comes."""
    began = time.monotonic()
    try:
        await connection.send(request_bytes("/make_payment", collection(name)), _LONGEST_S)
    except NoAnswer:
        return _LONGEST_S
    return time.monotonic() - began
