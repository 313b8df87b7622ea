"""The live feed under `/_sandbox/events`: Server-Sent Events of all changes.

Open pages read `/_sandbox/changes`, which only says that something changed; the page then loads
itself again. This costs a payment one function call: changes share one event, and nothing is
converted to JSON.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Final

from aiohttp import web
from pydantic import BeforeValidator, Field, WithJsonSchema

from sandbox_sim.events.event_feed import Feed
from sandbox_sim.ports import Clock, Store
from sandbox_sim.records.events import EventFilter, EventType, NumberedEvent
from sandbox_sim.web.control.input import SERVICE_ID, Input, QueryServiceId
from sandbox_sim.web.routes import Answer, Query, Route

# After this many seconds of real time without an event a comment is sent, because a proxy would
# close the connection.
KEEP_ALIVE_S: Final = 15.0

KEEP_ALIVE: Final = b": keep-alive\n\n"

# Sent to pages, which then load themselves again.
CHANGED: Final = b"event: changed\ndata: {}\n\n"

# Milliseconds after which a reader that was cut off connects again.
_RETRY: Final = b"retry: 1000\n\n"

# All in seconds of real time. One event comes at most in each pause.
_PAUSE_S: Final = 0.5
_LOOK_S: Final = 0.5
# How often pages look where other servers write to the store, too.
_SHARED_S: Final = 2.0

_HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


async def open_stream(request: web.Request) -> web.StreamResponse:
    """Send the head of a stream. Raises `ConnectionError` if the reader has gone."""
    answer = web.StreamResponse(headers=_HEADERS)
    await answer.prepare(request)
    await answer.write(_RETRY)
    return answer


def hang_up(request: web.Request) -> None:
    """Abort the connection of a reader that does not read what was sent."""
    if request.transport is not None and request.transport.get_write_buffer_size():
        request.transport.abort()


_InTypes: Final = BeforeValidator(lambda text: frozenset(map(EventType, text.split(","))))

_TYPE: Final = f"({'|'.join(EventType)})"


class EventsQuery(Input):
    """The query of the feed.

    types: gap means that events are missing.
    after: the same as the header `Last-Event-ID`, for readers that cannot send that header.
    """

    service_id: QueryServiceId | None = Field(None, description=SERVICE_ID)
    types: Annotated[
        frozenset[EventType],
        _InTypes,
        WithJsonSchema({"type": "string", "pattern": f"^{_TYPE}(,{_TYPE})*$"}),
    ] = Field(
        frozenset(EventType),
        description=f"a list of {', '.join(EventType)}, separated by commas without spaces",
    )
    after: str | None = Field(None, description="the id of the last event that the client received")


@dataclass(frozen=True, eq=False)
class EventRoutes:
    """The live feed. shared: other servers write to the store, too."""

    feed: Feed
    clock: Clock
    store: Store
    _: KW_ONLY
    shared: bool

    def routes(self) -> Sequence[Route]:
        """The routes of the feed and of open pages."""
        return [
            Route(
                "GET", "/_sandbox/events", self.events,
                "send everything that happens, as Server-Sent Events",
                "Events", (Answer(None, media_type="text/event-stream"),),
                query=Query(EventsQuery),
            ),
            Route(
                "GET", "/_sandbox/changes", self.changes,
                "announce changes, at most twice a second",
                "Events", (Answer(None, media_type="text/event-stream"),),
            ),
        ]  # fmt: skip

    async def events(self, request: web.Request, asked: EventsQuery) -> web.StreamResponse:
        """Send events until the client disconnects or stops reading, or the server stops."""
        wanted = EventFilter(asked.service_id, asked.types)
        after = request.headers.get("Last-Event-ID") or asked.after

        with self.feed.listening(wanted, after, partial(hang_up, request)) as reader:
            answer = await open_stream(request)
            while (events := await reader.take(KEEP_ALIVE_S)) is not None:
                await answer.write(b"".join(map(_framed, events)) or KEEP_ALIVE)
                await self.clock.pause(0)
        return answer

    async def changes(self, request: web.Request) -> web.StreamResponse:
        """Send events without content until the client disconnects or the server stops."""
        changed = asyncio.Event()
        unwatch = self.store.watch(changed.set)
        try:
            answer = await open_stream(request)
            while await self._next(changed):
                await answer.write(CHANGED if changed.is_set() or self.shared else KEEP_ALIVE)
                changed.clear()
                await self.clock.pause(_PAUSE_S)
        finally:
            unwatch()
        return answer

    async def _next(self, changed: asyncio.Event) -> bool:
        """Wait for a change, or until a keep-alive is due; False if the server stops."""
        longest_s = _SHARED_S if self.shared else KEEP_ALIVE_S
        until = self.clock.monotonic() + longest_s
        while not changed.is_set() and self.clock.monotonic() < until:
            if self.feed.closed:
                return False
            await self.clock.wait_at_most(changed, _LOOK_S)
        return not self.feed.closed


def _framed(numbered: NumberedEvent) -> bytes:
    event = numbered.event
    return f"id: {numbered.id}\nevent: {event.type}\ndata: {event.data}\n\n".encode("ascii")
