"""A reader of the live feed, over its own connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import ClientResponse

from tests.conftest import Sandbox
from tests.kit.requests import strict_json

PATH = "/_sandbox/events"


class Event(NamedTuple):
    """One event as a reader receives it."""

    id: str
    type: str
    data: dict[str, Any]


class Listener:
    """Reads an event stream block by block."""

    def __init__(self, response: ClientResponse) -> None:
        self.response = response

    async def block(self) -> str:
        """Return the lines up to the next empty line, or "" at the end of the stream."""
        lines = []
        async with asyncio.timeout(10):  # far more than it needs
            while (line := await self.response.content.readline()).strip():
                lines.append(line.decode())
        return "".join(lines)

    async def next(self) -> Event:
        """Return the next event, and skip comments."""
        while (block := await self.block()).startswith(":"):
            pass
        assert block, "the stream has ended"
        id_, type_, data = (line.partition(": ")[2] for line in block.splitlines())
        return Event(id_, type_, strict_json(data))

    async def take(self, count: int) -> list[Event]:
        """Return the next `count` events."""
        return [await self.next() for _ in range(count)]


@asynccontextmanager
async def listening(sandbox: Sandbox, query: str = "", **headers: str) -> AsyncIterator[Listener]:
    """Open the live feed; the listener receives every event from now on."""
    async with sandbox.session.get(sandbox.url + PATH + query, headers=headers) as response:
        assert response.status == 200, await response.text()
        listener = Listener(response)
        assert await listener.block() == "retry: 1000\n"
        yield listener


def fields(events: list[Event], *names: str) -> list[tuple[Any, ...]]:
    """The type of each event, and these fields of its record."""
    return [(each.type, *(each.data[name] for name in names)) for each in events]
