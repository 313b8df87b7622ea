"""Slow, incomplete and very large requests, and clients that half-close early."""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Final

from attack.load import send_all
from attack.plan import Plan
from attack.results import Result, at_most, none_of, within
from attack.servers import LIVEZ, Server, serving
from attack.wire import NoAnswer, connected, read_response, request_bytes, seconds_to_answer
from tests.kit.requests import OPERATIONS, collection

_AT_ONCE_S: Final = 1.0
_GROWTH_MIB: Final = 100.0
_LONG: Final = "http://127.0.0.1:9/" + "x" * 900_000
_SLOW_CLIENTS: Final = 200


async def attack(plan: Plan) -> list[Result]:
    """Each kind of client in turn against one server; the large addresses come last."""
    async with serving(plan.directory / "slow.log") as server:
        unauthorized_s = await _unauthorized(server)
        half_closed = _half_closed_requests() * plan.pick(5, 50)
        unanswered = [name for name, raw in half_closed if not await _answers(server, raw)]
        beside_slow_s = await _beside_slow_clients(server)
        before = server.rss_mib()
        count = plan.pick(200, 2_000)
        statuses = await send_all(server.port, map(_long_request, range(count)))
        await server.ask("/_sandbox/reset", {})
        await asyncio.sleep(0.5)
        growth_mib, tracebacks = server.rss_mib() - before, server.tracebacks
    long = f"{count} callback_urls of 0.9 MB"
    slow = f"{_SLOW_CLIENTS} clients that send a byte now and then: a new one waits"
    taken = [f"HTTP {status}" for status in statuses if status != 400]
    never = "no credentials and a body that never comes: 401 after"
    return [
        within(never, unauthorized_s, _AT_ONCE_S),
        none_of("half-closed clients without their answer:", unanswered, len(half_closed)),
        at_most(slow, beside_slow_s, _AT_ONCE_S, "s"),
        none_of(f"{long} not refused with 400:", taken),
        at_most(f"{long}, after a reset: memory has grown by", growth_mib, _GROWTH_MIB, "MiB"),
        at_most("slow requests: tracebacks in the log", tracebacks, 0),
    ]


async def _unauthorized(server: Server) -> float | None:
    """Send a head with a length, and no body."""
    began = time.monotonic()
    for path in ("/make_payment", "/sms/send"):
        request = request_bytes(path, b"", credentials=False, length=1000)
        try:
            async with connected(server.port) as (reader, writer):
                writer.write(request)
                answer = await read_response(reader, within=3.0)
        except NoAnswer:
            return None
        if answer.status != 401:
            return None
    return time.monotonic() - began


def _half_closed_requests() -> list[tuple[str, bytes]]:
    body = collection("half-closed")
    raw = request_bytes("/make_payment", body)
    balance = OPERATIONS["balance"]
    return [
        ("a payment", raw),
        (
            "a payment and Connection: close",
            request_bytes("/make_payment", body, b"Connection: close"),
        ),
        ("a payment with a query", request_bytes("/make_payment?a=b", body)),
        ("a query", request_bytes(balance.path, balance.body)),
        ("livez", LIVEZ),
    ]


async def _answers(server: Server, raw: bytes) -> bool:
    """Whether a client that sends a whole request and half-closes gets an answer."""
    try:
        async with connected(server.port) as (reader, writer):
            writer.write(raw)
            writer.write_eof()
            return (await read_response(reader, within=3.0)).status in {200, 202}
    except NoAnswer:
        return False


async def _beside_slow_clients(server: Server) -> float:
    """The longest wait of a new client while others send a request byte by byte."""
    request = request_bytes("/make_payment", collection("slow"))
    waits = []
    async with AsyncExitStack() as opened:
        slow = [
            await opened.enter_async_context(connected(server.port)) for _ in range(_SLOW_CLIENTS)
        ]
        for place in range(10):
            for _, writer in slow:
                writer.write(request[place : place + 1])
            waits.append(await seconds_to_answer(server.port, LIVEZ, within=3.0))
            await asyncio.sleep(0.02)
    return max(waits)


def _long_request(number: int) -> bytes:
    url = f"{_LONG}{number}"
    return request_bytes("/make_payment", collection(f"long-{number}", callback_url=url))
