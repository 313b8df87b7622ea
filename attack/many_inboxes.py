"""How much slower thousands of inboxes make a delivery: two servers, one with a single inbox."""

import time
from typing import Final

from attack.load import send_all
from attack.plan import Plan
from attack.results import Result, at_least, none_of
from attack.servers import Server, serving
from attack.wire import request_bytes

_RATIO: Final = 0.5
_INBOXES: Final = 20_000
_ROUNDS: Final = 3
# Deliveries to each server in turn, so the load of the machine is the same for both.
_TURNS: Final = 10
_OF_A_TURN: Final = 100


async def attack(plan: Plan) -> list[Result]:
    """Fill one server with inboxes and measure; again if the machine was busy."""
    folder = plan.directory
    async with (
        serving(folder / "many.log", store=f"sqlite:{folder / 'many.sqlite3'}") as crowded,
        serving(folder / "single.log", store=f"sqlite:{folder / 'single.sqlite3'}") as single,
    ):
        names = (f"box-{number}" for number in range(_INBOXES))
        statuses = await send_all(crowded.port, map(_delivery, names))
        refused = len(statuses) - statuses.count(200)
        for _ in range(_ROUNDS):
            results = await _one_round(crowded, single, refused)
            if all(each.holds for each in results):
                break
        return results


async def _one_round(crowded: Server, single: Server, refused: int) -> list[Result]:
    spent = {crowded.port: 0.0, single.port: 0.0}
    for _ in range(_TURNS):
        for port in spent:
            began = time.monotonic()
            statuses = await send_all(port, [_delivery("one")] * _OF_A_TURN, connections=4)
            spent[port] += time.monotonic() - began
            refused += len(statuses) - statuses.count(200)
    beside_many, beside_one = (_TURNS * _OF_A_TURN / each for each in spent.values())
    many = f"deliveries a second with {_INBOXES:,} inboxes"
    figures = f"({beside_many:,.0f} against {beside_one:,.0f})"
    return [
        at_least(f"{many}, times those with one, {figures}", beside_many / beside_one, _RATIO),
        none_of(f"{many}: refused", ["not HTTP 200"] * refused),
    ]


def _delivery(name: str) -> bytes:
    return request_bytes(f"/_sandbox/inbox/{name}", {"trans_ref": "T1"})
