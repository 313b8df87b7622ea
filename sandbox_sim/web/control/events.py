"""The live feed under `/_sandbox/events`: Server-Sent Events of all that happens.

Source: docs/control-api.md; the format is the HTML standard's.
"""

from typing import Annotated, Final

from aiohttp import web
from pydantic import BeforeValidator, Field

from sandbox_sim.domain.control.events import EventFilter, EventType, NumberedEvent
from sandbox_sim.gateway.control.event_feed import Feed
from sandbox_sim.gateway.ports import Clock
from sandbox_sim.web.control.control_input import (
    LARGEST_INTEGER,
    SERVICE_ID,
    Guard,
    Input,
    InQuery,
    Routes,
    query_of,
)

# After so much real time without an event a comment is sent, lest a proxy take us for dead.
KEEP_ALIVE_S: Final = 15.0
_KEEP_ALIVE: Final = b": keep-alive\n\n"
# When whoever was cut off should come back, in ms.
_RETRY: Final = b"retry: 1000\n\n"
_HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}

_InTypes: Final = BeforeValidator(lambda text: frozenset(map(EventType, text.split(","))))


class EventsQuery(Input):
    """What of the feed is asked for.

    after: what `Last-Event-ID` says, for those who cannot send that header.
    """

    service_id: Annotated[int, InQuery] | None = Field(
        None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID
    )
    types: Annotated[frozenset[EventType], _InTypes] = Field(
        frozenset(EventType),
        description=f"some of {', '.join(EventType)}, with commas between and no spaces",
    )
    after: str | None = Field(None, description="the id of the last event that was heard")


class EventRoutes:
    """The feed, for whoever holds the control token."""

    def __init__(self, feed: Feed, clock: Clock, guard: Guard) -> None:
        self._feed = feed
        self._clock = clock
        self._guard = guard

    def routes(self) -> Routes:
        """The route table."""
        return [("GET", "/_sandbox/events", self._guard(self.events))]

    async def end(self, _app: web.Application) -> None:
        """The server stops: let all readers go, for it waits for whoever it still answers."""
        self._feed.close()

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Events as they come, until the reader goes, does not read, or the server stops."""
        asked = query_of(request, EventsQuery)
        wanted = EventFilter(asked.service_id, asked.types)
        after = request.headers.get("Last-Event-ID") or asked.after
        answer = web.StreamResponse(headers=_HEADERS)

        def hang_up() -> None:
            if request.transport is not None and request.transport.get_write_buffer_size():
                request.transport.abort()

        with self._feed.listening(wanted, after, hang_up) as reader:
            await answer.prepare(request)
            await answer.write(_RETRY)
            while (events := await reader.take(KEEP_ALIVE_S)) is not None:
                await answer.write(b"".join(map(_framed, events)) or _KEEP_ALIVE)
                await self._clock.pause(0)
        return answer


def _framed(told: NumberedEvent) -> bytes:
    event = told.event
    return f"id: {told.id}\nevent: {event.type}\ndata: {event.data}\n\n".encode("ascii")
