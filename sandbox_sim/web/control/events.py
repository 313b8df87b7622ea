"""The live feed under `/_sandbox/events`: Server-Sent Events of all that happens.

Source: docs/control-api.md; the format is the HTML standard's.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

from aiohttp import web
from pydantic import BeforeValidator, Field, WithJsonSchema

from sandbox_sim.domain.control.events import EventFilter, EventType, NumberedEvent
from sandbox_sim.gateway.control.event_feed import Feed
from sandbox_sim.gateway.ports import Clock
from sandbox_sim.web.control.input_models import SERVICE_ID, Input, QueryServiceId
from sandbox_sim.web.event_stream import KEEP_ALIVE, KEEP_ALIVE_S, hang_up, open_stream
from sandbox_sim.web.routes import Answer, Query, Route

_InTypes: Final = BeforeValidator(lambda text: frozenset(map(EventType, text.split(","))))
_TYPE: Final = f"({'|'.join(EventType)})"


class EventsQuery(Input):
    """The query of the feed.

    after: the same as the header `Last-Event-ID`, for readers that cannot send that header.
    """

    service_id: QueryServiceId | None = Field(None, description=SERVICE_ID)
    types: Annotated[
        frozenset[EventType],
        _InTypes,
        WithJsonSchema({"type": "string", "pattern": f"^{_TYPE}(,{_TYPE})*$"}),
    ] = Field(
        frozenset(EventType),
        description=f"some of {', '.join(EventType)}, with commas between and no spaces",
    )
    after: str | None = Field(None, description="the id of the last event that was heard")


class EventRoutes:
    """The live feed."""

    def __init__(self, feed: Feed, clock: Clock) -> None:
        self._feed = feed
        self._clock = clock

    def routes(self) -> Sequence[Route]:
        """The route of the feed."""
        return [
            Route(
                "GET", "/_sandbox/events", self.events,
                "send everything that happens, as Server-Sent Events",
                "Events", (Answer(None, media_type="text/event-stream"),),
                query=Query(EventsQuery),
            ),
        ]  # fmt: skip

    async def end(self, _app: web.Application) -> None:
        """Close the feed when the server stops: the server waits for every open answer."""
        self._feed.close()

    async def events(self, request: web.Request, asked: EventsQuery) -> web.StreamResponse:
        """Send events as they come, until the reader goes, does not read, or the server stops."""
        wanted = EventFilter(asked.service_id, asked.types)
        after = request.headers.get("Last-Event-ID") or asked.after

        with self._feed.listening(wanted, after, partial(hang_up, request)) as reader:
            answer = await open_stream(request)
            while (events := await reader.take(KEEP_ALIVE_S)) is not None:
                await answer.write(b"".join(map(_framed, events)) or KEEP_ALIVE)
                await self._clock.pause(0)
        return answer


def _framed(told: NumberedEvent) -> bytes:
    event = told.event
    return f"id: {told.id}\nevent: {event.type}\ndata: {event.data}\n\n".encode("ascii")
