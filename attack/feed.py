"""Large deliveries to an inbox, which need no token, and the memory that they take."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from attack.load import send_all
from attack.plan import Plan
from attack.results import Result, at_least, at_most, none_of
from attack.servers import Server, serving
from attack.wire import connected, exchange, request_bytes

_GROWTH_MIB: Final = 100.0
_POSTS: Final = 400
_BYTES: Final = 1_000_000
# One such character makes Python store the whole text with four bytes a character.
_BODIES: Final = {
    "ASCII": b"x" * _BYTES,
    "text with one emoji": b"x" * (_BYTES - 4) + "😀".encode(),
}
_FOREIGN: Final = (
    b"Origin: https://elsewhere.example",
    b"Origin: null",
    b"Sec-Fetch-Site: cross-site",
)


async def attack(plan: Plan) -> list[Result]:
    """Try without readers, with readers, and with readers that stop reading; then foreign pages."""
    cases = [("ASCII", "open"), ("ASCII", "stuck"), ("text with one emoji", "none")]
    if plan.full:
        cases = [(body, reader) for body in _BODIES for reader in ("none", "open", "stuck")]
    results = [result for case in cases for result in await _deliver(plan, *case)]
    return [*results, *await _from_foreign_pages(plan)]


async def _deliver(plan: Plan, body: str, reader: str) -> list[Result]:
    """Deliver, and compare the memory before with its maximum meanwhile."""
    log = plan.directory / f"feed-{reader}-{len(_BODIES[body])}.log"
    async with serving(log) as server, _reading(server, reader):
        before = server.rss_mib()
        most, taken = before, 0
        posts = plan.pick(120, _POSTS)
        for begin in range(0, posts, 20):
            names = (f"/_sandbox/inbox/{number % 7}" for number in range(begin, begin + 20))
            requests = (request_bytes(name, _BODIES[body]) for name in names)
            taken += (await send_all(server.port, requests, connections=4)).count(200)
            most = max(most, server.rss_mib())
    name = f"{posts} deliveries of 1 MB, {body}, reader of events: {reader}:"
    return [
        at_least(f"{name} taken", taken, posts),
        at_most(f"{name} memory grows by", most - before, _GROWTH_MIB, "MiB"),
    ]


@asynccontextmanager
async def _reading(server: Server, kind: str) -> AsyncIterator[None]:
    """A reader that reads (open), one that stops reading (stuck), or no reader."""
    if kind == "none":
        yield
        return
    async with connected(server.port) as (reader, writer):
        writer.write(request_bytes("/_sandbox/events", method=b"GET"))
        await reader.readuntil(b"\r\n\r\n")

        async def read() -> None:
            while await reader.read(2**18):
                pass

        reading = asyncio.create_task(read()) if kind == "open" else None
        try:
            yield
        finally:
            if reading is not None:
                reading.cancel()


async def _from_foreign_pages(plan: Plan) -> list[Result]:
    """One delivery for each header that a browser sends for a foreign page."""
    async with serving(plan.directory / "origins.log") as server:
        let_in = []
        for header in _FOREIGN:
            delivery = request_bytes("/_sandbox/inbox/x", b"{}", header)
            answer = await exchange(server.port, delivery)
            if answer.status != 403:
                let_in.append(f"{header.decode()}: HTTP {answer.status}")
        by_another_name = request_bytes("/_sandbox/inbox/x", b"{}").replace(
            b"Host: 127.0.0.1", b"Host: gateway.internal"
        )
        answer = await exchange(server.port, by_another_name)
        kept_out = [] if answer.status == 200 else [f"HTTP {answer.status}"]
    return [
        none_of("deliveries that a foreign page sends and that are taken", let_in),
        none_of("deliveries by another Host that are refused", kept_out),
    ]
