"""`clock advance` while payments come all the time, and another call of the clock beside it."""

import asyncio
import time
from collections.abc import Iterator
from typing import Final

from attack.load import send_all
from attack.plan import Plan
from attack.results import Result, at_least, within
from attack.servers import Server, serving
from attack.wire import NoAnswer, exchange, request_bytes
from tests.kit.requests import collection

_MINUTES: Final = 10
_WITHIN_S: Final = 20.0
_NEVER_S: Final = 60.0
# With fewer there is no load, and the attack proves nothing.
_PAYMENTS_A_SECOND: Final = 25.0


async def attack(plan: Plan) -> list[Result]:
    """Pay without a pause, advance, and freeze at the same time; with `--full` after more load."""
    async with serving(plan.directory / "clock.log", "log_level=error") as server:
        bodies, stop = _bodies(), asyncio.Event()
        began = time.monotonic()
        paying = asyncio.create_task(send_all(server.port, _until(stop, bodies)))
        await asyncio.sleep(plan.pick(1.0, 5.0))
        advanced_s, frozen_s = await asyncio.gather(
            _seconds(server, "advance", {"seconds": _MINUTES * 60}),
            _seconds(server, "freeze", {}),
        )
        stop.set()
        statuses = await paying
        rate = statuses.count(202) / (time.monotonic() - began)
    name = f"clock advance by {_MINUTES} min under {rate:,.0f} payments a second:"
    return [
        at_least("clock advance: payments a second beside it", rate, _PAYMENTS_A_SECOND),
        within(f"{name} it ends after", advanced_s, _WITHIN_S),
        within(f"{name} a freeze beside it ends after", frozen_s, _WITHIN_S),
    ]


def _bodies() -> Iterator[bytes]:
    number = 0
    while True:
        number += 1
        yield request_bytes("/make_payment", collection(f"clock-{number}"))


def _until(stop: asyncio.Event, requests: Iterator[bytes]) -> Iterator[bytes]:
    while not stop.is_set():
        yield next(requests)


async def _seconds(server: Server, call: str, body: object) -> float | None:
    """How long a call of the clock takes; None if it has no answer in time."""
    began = time.monotonic()
    try:
        request = request_bytes(f"/_sandbox/clock/{call}", body)
        await exchange(server.port, request, _NEVER_S)
    except NoAnswer:
        return None
    return time.monotonic() - began
