"""Server-Sent Events: the live feed, and callbacks for a program elsewhere.

`/_sandbox/events` sends all changes. Open pages read `/_sandbox/changes`, which only says that
something changed; the page then loads itself again. This costs a payment one function call: changes
share one event, and nothing is converted to JSON.

`/_sandbox/listen` sends callbacks to a program in place of the receiver; each answer is a request
of its own.
"""

import asyncio
import json
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Final, TypedDict

from aiohttp import web
from pydantic import BeforeValidator, Field, WithJsonSchema

from sandbox_sim.callbacks.listeners import CallbackListener, CallbackListeners
from sandbox_sim.events.event_feed import Feed
from sandbox_sim.ports import Clock, Store, StoreError, Topic
from sandbox_sim.records.callbacks import KEPT_BODY_BYTES, FailureKind, ReceiverResponse
from sandbox_sim.records.events import EventFilter, EventType, NumberedEvent
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.web.api.request_models import WebAddress
from sandbox_sim.web.control.errors import NOT_FOUND, RequestRefused
from sandbox_sim.web.control.input import LARGEST_INTEGER, SERVICE_ID, Input, QueryServiceId
from sandbox_sim.web.routes import EVENT_STREAM, RouteGroup, route
from sandbox_sim.web.transport.gateway_protocol import run_while_connected

# After this many seconds of real time without an event a comment is sent, because a proxy would
# close the connection.
KEEP_ALIVE_S: Final = 15.0

KEEP_ALIVE: Final = b": keep-alive\n\n"

# Sent to pages, which then load themselves again.
CHANGED: Final = b"event: changed\ndata: {}\n\n"

# Milliseconds after which a reader that was cut off connects again.
_RETRY: Final = b"retry: 1000\n\n"

# All in seconds of real time. Two events to a page are at least one pause apart.
_MIN_PAUSE_S: Final = 0.5
# How often a stream to a page checks whether the server stops.
_STOP_POLL_S: Final = 0.5
# How often pages load themselves again if other servers write to the store, too.
_SHARED_REFRESH_S: Final = 2.0

_HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


async def open_stream(request: web.Request) -> web.StreamResponse:
    """Send the head of a stream. Raises `ConnectionError` if the reader has disconnected."""
    answer = web.StreamResponse(headers=_HEADERS)
    await answer.prepare(request)
    await answer.write(_RETRY)
    return answer


def abort_stalled(request: web.Request) -> None:
    """Abort the connection of a reader that has not read what was sent."""
    if request.transport is not None and request.transport.get_write_buffer_size():
        request.transport.abort()


_ParseTypes: Final = BeforeValidator(lambda text: frozenset(map(EventType, text.split(","))))

_TYPE_PATTERN: Final = f"({'|'.join(EventType)})"


class EventsQuery(Input):
    """The query of the feed.

    types: gap means that events are missing.
    after: the same as the header `Last-Event-ID`, for readers that cannot send that header.
    """

    service_id: QueryServiceId | None = Field(None, description=SERVICE_ID)
    types: Annotated[
        frozenset[EventType],
        _ParseTypes,
        WithJsonSchema({"type": "string", "pattern": f"^{_TYPE_PATTERN}(,{_TYPE_PATTERN})*$"}),
    ] = Field(
        frozenset(EventType),
        description=f"a list of {', '.join(EventType)}, separated by commas without spaces",
    )
    after: str | None = Field(None, description="the id of the last event that the client received")


@dataclass(frozen=True, eq=False)
class EventRoutes(RouteGroup):
    """The live feed. shared: other servers write to the store, too."""

    feed: Feed
    clock: Clock
    store: Store
    _: KW_ONLY
    shared: bool

    group = "Events"

    @route("GET /_sandbox/events", "send everything that happens, as Server-Sent Events",
           answers=(EVENT_STREAM,))  # fmt: skip
    async def events(self, request: web.Request, query: EventsQuery) -> web.StreamResponse:
        """Send events until the client disconnects or stops reading, or the server stops."""
        events_filter = EventFilter(query.service_id, query.types)
        after = request.headers.get("Last-Event-ID") or query.after

        with self.feed.listening(events_filter, after, partial(abort_stalled, request)) as reader:
            if self.shared:
                # The client may go on at another server as soon as it reads the head.
                with suppress(StoreError):
                    await self.store.run(lambda unit: unit.announce(Topic.READERS))
            answer = await open_stream(request)
            while (events := await reader.take(KEEP_ALIVE_S)) is not None:
                await answer.write(b"".join(map(_event_frame, events)) or KEEP_ALIVE)
                await self.clock.pause(0)
        return answer

    @route("GET /_sandbox/changes", "announce changes, at most twice a second",
           answers=(EVENT_STREAM,))  # fmt: skip
    async def changes(self, request: web.Request) -> web.StreamResponse:
        """Send events without content until the client disconnects or the server stops."""
        changed = asyncio.Event()
        unwatch = self.store.watch(changed.set)
        try:
            answer = await open_stream(request)
            while await self._wait_for_change(changed):
                await answer.write(CHANGED if changed.is_set() or self.shared else KEEP_ALIVE)
                changed.clear()
                await self.clock.pause(_MIN_PAUSE_S)
        finally:
            unwatch()
        return answer

    async def _wait_for_change(self, changed: asyncio.Event) -> bool:
        """Wait for a change, or until a keep-alive is due; False if the server stops."""
        timeout_s = _SHARED_REFRESH_S if self.shared else KEEP_ALIVE_S
        until = self.clock.monotonic() + timeout_s
        while not changed.is_set() and self.clock.monotonic() < until:
            if self.feed.closed:
                return False
            await self.clock.wait_at_most(changed, _STOP_POLL_S)
        return not self.feed.closed


def _event_frame(numbered: NumberedEvent) -> bytes:
    event = numbered.event
    return f"id: {numbered.id}\n".encode("ascii") + _frame(event.type, event.data)


def _frame(event: str, data: str) -> bytes:
    return f"event: {event}\ndata: {data}\n\n".encode("ascii")


_A_TEXT: Final = f"a string of at most {KEPT_BODY_BYTES} characters"
_FAILURE_NAMES: Final = tuple(each.name.lower() for each in FailureKind)


class ListenQuery(Input):
    """The query of a listener.

    forward_to: where the listener sends callbacks, which attempts show as `sent_to`.
    """

    forward_to: WebAddress = Field(description="an address such as http://127.0.0.1:5000/callback")
    service_id: QueryServiceId | None = Field(None, description=SERVICE_ID)


class ListenAnswerBody(Input):
    """What the receiver answered.

    status_code: null where no answer came.
    response_body: the answer.
    problem: why no answer came.
    failure: where to look for the cause.
    """

    number: int = Field(ge=1, le=LARGEST_INTEGER, description="the number of the callback")
    status_code: int | None = Field(
        None, ge=100, le=599, description="an HTTP status, an integer from 100 to 599"
    )
    response_body: str = Field("", max_length=KEPT_BODY_BYTES, description=_A_TEXT)
    problem: str | None = Field(None, max_length=KEPT_BODY_BYTES, description=_A_TEXT)
    failure: str | None = Field(
        None,
        pattern=f"^({'|'.join(_FAILURE_NAMES)})$",
        description=f"one of {', '.join(_FAILURE_NAMES)}",
    )

    @property
    def response(self) -> ReceiverResponse:
        """The answer as an attempt keeps it."""
        problem, failure = self.problem, self.failure
        if self.status_code is None:
            problem, failure = problem or "no answer came", failure or "exchange"
        kind = None if failure is None else FailureKind[failure.upper()]
        return ReceiverResponse(self.status_code, self.response_body, 0, problem, kind)


class ForwardedAnswer(TypedDict):
    """Whether a reported answer was recorded."""

    recorded: Annotated[bool, "false if the attempt had ended before"]


@dataclass(frozen=True, eq=False)
class ListenRoutes(RouteGroup):
    """The routes of listeners. shared: other servers may send callbacks that do not come here."""

    listeners: CallbackListeners
    _: KW_ONLY
    shared: bool

    group = "Listen"

    @route("GET /_sandbox/listen",
           "receive the callbacks of a service, or of all, as Server-Sent Events",
           answers=(EVENT_STREAM,))  # fmt: skip
    async def listen(self, request: web.Request, query: ListenQuery) -> web.StreamResponse:
        """Send callbacks until the listener disconnects or the server stops."""
        answer = await open_stream(request)
        listener = self.listeners.add(query.service_id, redact_text(query.forward_to))
        try:
            details = {"listener": listener.name, "shared": self.shared}
            await answer.write(_frame("listening", json.dumps(details)))
            await run_while_connected(request, self._forward(listener, answer))
        finally:
            self.listeners.remove(listener)
        return answer

    async def _forward(self, listener: CallbackListener, answer: web.StreamResponse) -> None:
        with suppress(ConnectionError):  # the listener has disconnected
            while not self.listeners.closed:
                callback = await listener.next(KEEP_ALIVE_S)
                frame = callback and _frame("callback", json.dumps(callback._asdict()))
                await answer.write(frame or KEEP_ALIVE)

    @route("POST /_sandbox/listen/{listener}/answers",
           "report what the receiver answered to a callback")  # fmt: skip
    async def answer(self, request: web.Request, body: ListenAnswerBody) -> ForwardedAnswer:
        """Record the answer of a receiver as the answer of the attempt."""
        listener = self.listeners.connected.get(request.match_info["listener"])
        if listener is None:
            raise RequestRefused(NOT_FOUND, "there is no such listener: connect again")
        return {"recorded": listener.answer(body.number, body.response)}
