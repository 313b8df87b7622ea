"""Slow, incomplete and very large requests, and clients that half-close early."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Measured:
    """unauthorized_s: seconds until the 401 to a request without its body; None if none came."""

    unauthorized_s: float | None
    half_closed: int
    half_closed_unanswered: Sequence[str]
    slow_clients: int
    beside_slow_s: float
    long_addresses: int
    long_not_refused: Sequence[str]
    growth_mib: float
    tracebacks: int


def judge(measured: Measured) -> list[Result]:
    """The figures with their bounds."""
    unanswered, beside = measured.half_closed_unanswered, measured.beside_slow_s
    long = f"{measured.long_addresses} callback_urls of 0.9 MB"
    slow = f"{measured.slow_clients} clients that send a byte now and then: a new one waits"
    return [
        within(
            "no credentials and a body that never comes: 401 after",
            measured.unauthorized_s,
            _AT_ONCE_S,
        ),
        none_of("half-closed clients without their answer:", unanswered, measured.half_closed),
        at_most(slow, beside, _AT_ONCE_S, "s"),
        none_of(f"{long} not refused with 400:", measured.long_not_refused),
        at_most(
            f"{long}, after a reset: memory has grown by", measured.growth_mib, _GROWTH_MIB, "MiB"
        ),
        at_most("slow requests: tracebacks in the log", measured.tracebacks, 0),
    ]


async def attack(plan: Plan) -> list[Result]:
    """Try all against one server; the large addresses come last."""
    return judge(await measure(plan))


async def measure(plan: Plan) -> Measured:
    """Each kind of client in turn."""
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
        return Measured(
            unauthorized_s=unauthorized_s,
            half_closed=len(half_closed),
            half_closed_unanswered=unanswered,
            slow_clients=_SLOW_CLIENTS,
            beside_slow_s=beside_slow_s,
            long_addresses=count,
            long_not_refused=[f"HTTP {status}" for status in statuses if status != 400],
            growth_mib=server.rss_mib() - before,
            tracebacks=server.tracebacks,
        )


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
