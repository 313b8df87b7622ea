"""How much slower thousands of inboxes make a delivery: two servers, one with a single inbox."""

import time
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Measured:
    """Deliveries a second, and how many were not taken."""

    inboxes: int
    beside_many: float
    beside_one: float
    refused: int


def judge(measured: Measured) -> list[Result]:
    """The ratio with its bound, and the two figures."""
    figures = f"({measured.beside_many:,.0f} against {measured.beside_one:,.0f})"
    many = f"deliveries a second with {measured.inboxes:,} inboxes"
    return [
        at_least(f"{many}, times those with one, {figures}",
                 measured.beside_many / measured.beside_one, _RATIO),
        none_of(f"{many}: refused", ["not HTTP 200"] * measured.refused),
    ]  # fmt: skip


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
            measured = await _one_round(crowded, single, refused)
            if all(each.holds for each in judge(measured)):
                break
        return judge(measured)


async def _one_round(crowded: Server, single: Server, refused: int) -> Measured:
    spent = {crowded.port: 0.0, single.port: 0.0}
    for _ in range(_TURNS):
        for port in spent:
            began = time.monotonic()
            statuses = await send_all(port, [_delivery("one")] * _OF_A_TURN, connections=4)
            spent[port] += time.monotonic() - began
            refused += len(statuses) - statuses.count(200)
    beside_many, beside_one = (_TURNS * _OF_A_TURN / each for each in spent.values())
    return Measured(_INBOXES, beside_many, beside_one, refused)


def _delivery(name: str) -> bytes:
    return request_bytes(f"/_sandbox/inbox/{name}", {"trans_ref": "T1"})
