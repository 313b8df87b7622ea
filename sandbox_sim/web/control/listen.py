"""`/_sandbox/listen`: a program elsewhere receives callbacks in place of the receiver.

The callbacks come as Server-Sent Events; each answer is a request of its own.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Final, TypedDict

from aiohttp import web
from pydantic import AfterValidator, Field

from sandbox_sim.callbacks.listeners import CallbackListener, CallbackListeners
from sandbox_sim.http_addresses import MAX_CHARACTERS, check
from sandbox_sim.records.callbacks import KEPT_BODY_BYTES, FailureKind, ReceiverResponse
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.web.control.errors import NOT_FOUND, RequestRefused
from sandbox_sim.web.control.events import KEEP_ALIVE, KEEP_ALIVE_S, open_stream
from sandbox_sim.web.control.input import (
    LARGEST_INTEGER,
    SERVICE_ID,
    Input,
    QueryServiceId,
)
from sandbox_sim.web.routes import Answer, Body, Query, Route
from sandbox_sim.web.transport.gateway_protocol import run_while_connected

_TEXT: Final = f"a string of at most {KEPT_BODY_BYTES} characters"
_FAILURES: Final = tuple(each.name.lower() for each in FailureKind)


def _address(url: str) -> str:
    check(url)
    return url


class ListenQuery(Input):
    """The query of a listener.

    forward_to: where the listener sends callbacks, which attempts show as `sent_to`.
    """

    forward_to: Annotated[str, AfterValidator(_address)] = Field(
        max_length=MAX_CHARACTERS, description="an address such as http://127.0.0.1:5000/callback"
    )
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
    response_body: str = Field("", max_length=KEPT_BODY_BYTES, description=_TEXT)
    problem: str | None = Field(None, max_length=KEPT_BODY_BYTES, description=_TEXT)
    failure: str | None = Field(
        None,
        pattern=f"^({'|'.join(_FAILURES)})$",
        description=f"one of {', '.join(_FAILURES)}",
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
class ListenRoutes:
    """The routes of listeners. shared: other servers may send callbacks that do not come here."""

    listeners: CallbackListeners
    _: KW_ONLY
    shared: bool

    def routes(self) -> Sequence[Route]:
        route = partial(Route, group="Listen")
        return [
            route(
                "GET", "/_sandbox/listen", self.listen,
                "receive the callbacks of a service, or of all, as Server-Sent Events",
                answers=(Answer(None, media_type="text/event-stream"),), query=Query(ListenQuery),
            ),
            route(
                "POST", "/_sandbox/listen/{listener}/answers", self.answer,
                "report what the receiver answered to a callback",
                answers=(Answer(ForwardedAnswer),), body=Body(ListenAnswerBody),
                errors=(NOT_FOUND,),
            ),
        ]  # fmt: skip

    async def listen(self, request: web.Request, asked: ListenQuery) -> web.StreamResponse:
        """Send callbacks until the listener disconnects or the server stops."""
        answer = await open_stream(request)
        listener = self.listeners.add(asked.service_id, redact_text(asked.forward_to))
        try:
            hello = {"listener": listener.name, "shared": self.shared}
            await answer.write(_framed("listening", hello))
            await run_while_connected(request, self._forward(listener, answer))
        finally:
            self.listeners.remove(listener)
        return answer

    async def _forward(self, listener: CallbackListener, answer: web.StreamResponse) -> None:
        with suppress(ConnectionError):  # the listener has gone
            while not self.listeners.closed:
                callback = await listener.next(KEEP_ALIVE_S)
                known = callback and _framed("callback", callback._asdict())
                await answer.write(known or KEEP_ALIVE)

    async def answer(self, request: web.Request, asked: ListenAnswerBody) -> ForwardedAnswer:
        """Record the answer of a receiver as the answer of the attempt."""
        listener = self.listeners.named(request.match_info["listener"])
        if listener is None:
            raise RequestRefused(NOT_FOUND, "there is no such listener: connect again")
        return {"recorded": listener.answer(asked.number, asked.response)}


def _framed(event: str, data: Mapping[str, object]) -> bytes:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode("ascii")
