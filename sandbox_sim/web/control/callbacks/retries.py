"""Attempts at callbacks that come now, under `/_sandbox/callbacks`. Source: docs/control-api.md."""

from collections.abc import Sequence
from typing import TypedDict

from aiohttp import web
from pydantic import Field

from sandbox_sim.domain.callbacks import callbacks
from sandbox_sim.domain.callbacks.callbacks import CallbackView
from sandbox_sim.gateway.control.callback_retries import CallbackRetries
from sandbox_sim.web.control.errors import AMBIGUOUS, NOT_FOUND, NOT_WAITING, error_response
from sandbox_sim.web.control.input_models import LARGEST_INTEGER, SERVICE_ID, Input, Nothing
from sandbox_sim.web.control.records import no_such
from sandbox_sim.web.routes import Answer, Body, Route


class RetryBody(Input):
    """The body of `retry` of all: one service; without it every service."""

    service_id: int | None = Field(None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)


class RetriedCallbacks(TypedDict):
    """The callbacks whose next attempt comes now."""

    callbacks: list[CallbackView]


class CallbackRetryRoutes:
    """Makes the next attempt now, at one callback or at all that are retrying."""

    def __init__(self, retries: CallbackRetries) -> None:
        self._retries = retries

    def routes(self) -> Sequence[Route]:
        """The routes of `retry`."""
        return [
            Route(
                "POST", "/_sandbox/callbacks/retry", self.retry_all,
                "make the next attempt at every retrying callback now",
                "Callbacks", (Answer(RetriedCallbacks, 202),),
                body=Body(RetryBody, optional=True),
            ),
            Route(
                "POST", "/_sandbox/callbacks/{id}/retry", self.retry,
                "make the next attempt at a callback now",
                "Callbacks", (Answer(CallbackView, 202),), body=Body(Nothing, optional=True),
                errors=(NOT_FOUND, AMBIGUOUS, NOT_WAITING),
            ),
        ]  # fmt: skip

    async def retry(self, request: web.Request, _asked: Nothing) -> CallbackView | web.Response:
        """Make the next attempt now; HTTP 409 for a callback that waits for none."""
        name = request.match_info["id"]
        retried = await self._retries.retry(name)
        if retried is None:
            return no_such("callbacks", name)
        if not retried.was_waiting:
            text = f"callback {retried.callback.id} is {retried.callback.state}, so no attempt at"
            return error_response(NOT_WAITING, f"{text} it is to come: resend sends it once more")
        return callbacks.shown(retried.callback)

    async def retry_all(self, _request: web.Request, asked: RetryBody) -> RetriedCallbacks:
        """Make the next attempts at all that are retrying now; answers which they are."""
        retried = await self._retries.retry_all(asked.service_id)
        return {"callbacks": [*map(callbacks.shown, retried)]}
