"""Payments that are recorded: what the last costs, and what a recording that fails does."""

import asyncio
import time
from typing import Final

from attack.load import send_all
from attack.plan import Plan
from attack.production import payment, settings
from attack.results import Result, at_least, at_most, none_of
from attack.servers import Server, serving
from tests.kit.servers import cpu_s

# The first and the last so many are compared.
_COMPARED: Final = 50
_RATIO: Final = 1.5
_FAILING: Final = 20
_DECIDED_WITHIN_S: Final = 15.0
# A line for each exchange of a payment that cannot be recorded: its submit, a status, a callback.
_LINES: Final = 5.0


async def attack(plan: Plan) -> list[Result]:
    """Pay through another gateway; then there is a file where the folder of recordings was."""
    folder = plan.directory / "recorded"
    store = f"sqlite:{plan.directory / 'state.sqlite3'}"
    payments = plan.pick(200, 400)
    far_log, log = plan.directory / "far.log", plan.directory / "recordings.log"
    async with (
        serving(far_log, "settle_delay_ms=0", "log_level=warning") as far,
        serving(log, *settings(far.url, record=f"{folder}"), store=store) as server,
    ):
        first_ms, *_, last_ms = [await _pay(server, each) for each in range(0, payments, _COMPARED)]
        recorded = sum(1 for _ in folder.glob("*.json"))
        lines = len(server.logged())
        folder.rename(plan.directory / "elsewhere")
        folder.write_bytes(b"")
        undecided = await _failing(server)
        lines_each = (len(server.logged()) - lines) / _FAILING
        tracebacks = server.tracebacks
    times = f"({last_ms:.1f} ms against {first_ms:.1f} ms)"
    name = f"recorded payment {payments} takes, times the first, {times}"
    failing = f"{_FAILING} payments whose recording fails:"
    return [
        at_least("payments that are recorded", recorded, payments),
        at_most(name, last_ms / first_ms, _RATIO),
        none_of(f"{failing} not decided", undecided, _FAILING),
        at_most(f"{failing} log lines for each", lines_each, _LINES),
        at_most("recordings: tracebacks in the log", tracebacks, 0),
    ]


async def _pay(server: Server, first: int) -> float:
    """Processor time of one of the next payments, in milliseconds."""
    before = cpu_s(server.pid)
    names = (f"recorded-{number}" for number in range(first, first + _COMPARED))
    await send_all(server.port, (payment(name, nw="VOD") for name in names), connections=1)
    return (cpu_s(server.pid) - before) * 1000 / _COMPARED


async def _failing(server: Server) -> list[str]:
    """Pay, and wait until the other gateway has decided. Returns the payments that stay open."""
    names = {f"failing-{number}" for number in range(_FAILING)}
    await send_all(server.port, [payment(name, nw="VOD") for name in sorted(names)])
    ends = time.monotonic() + _DECIDED_WITHIN_S
    while True:
        shown = await server.listed("transactions")
        paid = {each["transaction_id"] for each in shown if each["status"] == "000"}
        if names <= paid or time.monotonic() > ends:
            return sorted(names - paid)
        await asyncio.sleep(0.2)
