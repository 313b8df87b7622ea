"""Payments whose receivers hang, many more than the server may have file descriptors."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from attack.load import send_all
from attack.plan import Plan
from attack.receivers import Receiver, hanging, receiving
from attack.results import Result, at_most, none_of, within
from attack.servers import Probe, Server, raise_own_limit, serving
from attack.wire import NoAnswer, request_bytes
from tests.kit.requests import collection

_DESCRIPTORS: Final = 1024
_CALLED_WITHIN_S: Final = 30.0
_SILENCE_S: Final = 2.0
_LOG_BYTES: Final = 1_000_000
# With more receivers than this, the attack does not wait for the good one.
_MOST_WAITED_FOR: Final = 1_500
_OBSERVED_S: Final = 20.0
# Part of the verdict on an attempt that failed because the server had no descriptors left.
_OUR_SHORTAGE: Final = ("Too many open files", "this machine cannot open a connection")


async def attack(plan: Plan) -> list[Result]:
    """One run for each number of receivers."""
    room = raise_own_limit() - 500
    counts = plan.pick((1_100,), (1_100, 1_500, 6_000))
    results = []
    for count in counts:
        results += await _pay(plan, min(count, room))
    return results


async def _pay(plan: Plan, count: int) -> list[Result]:
    """Send payments for all of them, then for a good one, and wait until that is called."""
    log = plan.directory / f"hanging-{count}.log"
    waited = count <= _MOST_WAITED_FOR
    name = f"{count:,} hanging receivers:"
    results: list[Result] = []
    async with (
        serving(log, "settle_delay_ms=100", descriptors=_DESCRIPTORS) as server,
        receiving() as good,
    ):
        with hanging(count) as urls:
            async with Probe(server).running() as probe:
                payments = (
                    request_bytes("/make_payment", collection(f"T{number}", callback_url=url))
                    for number, url in enumerate(urls)
                )
                statuses = await send_all(server.port, payments)
                if waited:
                    called_s = await _good_one(server, good)
                    called = f"{name} a good one is called after"
                    results.append(within(called, called_s, _CALLED_WITHIN_S))
                else:
                    await asyncio.sleep(_OBSERVED_S)
                silence_s = probe.longest_silence_s
            spent = await _spent_on_shortage(server) if waited else ()
        unanswered = sum(1 for status in statuses if status != 202)
        log_bytes = log.stat().st_size
        return [
            *results,
            at_most(f"{name} longest silence of the API", silence_s, _SILENCE_S, "s"),
            at_most(f"{name} payments without an answer", unanswered, 0),
            at_most(f"{name} log", log_bytes / 1000, _LOG_BYTES / 1000, "kB"),
            at_most(f"{name} tracebacks in the log", server.tracebacks, 0),
            none_of(f"{name} attempts used up by our shortage", spent),
            at_most(f"{name} descriptors open", probe.descriptors, _DESCRIPTORS - 1),
        ]


async def _good_one(server: Server, good: Receiver) -> float | None:
    """The seconds from its payment until the good receiver is called."""
    began = time.monotonic()
    payment = request_bytes("/make_payment", collection("good", callback_url=good.url))
    await send_all(server.port, [payment], connections=1, within=_CALLED_WITHIN_S)
    try:
        await asyncio.wait_for(good.called.wait(), _CALLED_WITHIN_S + 10)
    except TimeoutError:
        return None
    return time.monotonic() - began


async def _spent_on_shortage(server: Server) -> Sequence[str]:
    """The verdicts of attempts that were counted although nothing was sent."""
    try:
        callbacks = await server.listed("callbacks")
    except NoAnswer as error:
        return (f"the callbacks cannot be listed: {error}",)
    verdicts = (attempt["verdict"] for each in callbacks for attempt in each["attempts"])
    return [verdict for verdict in verdicts if any(said in verdict for said in _OUR_SHORTAGE)]
