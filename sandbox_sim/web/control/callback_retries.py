"""Attempts at callbacks that come now, under `/_sandbox/callbacks`. Source: docs/control-api.md."""

from aiohttp import web
from pydantic import Field

from sandbox_sim.domain.callbacks import callbacks
from sandbox_sim.gateway.control.callback_retries import CallbackRetries
from sandbox_sim.web.control.control_input import (
    LARGEST_INTEGER,
    SERVICE_ID,
    Guard,
    Input,
    Nothing,
    Routes,
    body_of,
    error,
)


class RetryBody(Input):
    """What `retry` of all takes: one service, or nothing for every service."""

    service_id: int | None = Field(None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)


class CallbackRetryRoutes:
    """`retry`, of one callback and of all that are retrying."""

    def __init__(self, retries: CallbackRetries, guard: Guard) -> None:
        self._retries = retries
        self._guard = guard

    def routes(self) -> Routes:
        """The route table."""
        return [
            ("POST", "/_sandbox/callbacks/retry", self._guard(self.retry_all)),
            ("POST", "/_sandbox/callbacks/{name}/retry", self._guard(self.retry)),
        ]

    async def retry(self, request: web.Request) -> web.Response:
        """Make the next attempt now; HTTP 409 for a callback that waits for none."""
        await body_of(request, Nothing, optional=True)
        name = request.match_info["name"]
        retried = await self._retries.retry(name)
        if retried is None:
            return error(404, "not_found", f"callbacks has no {name!r}, or has it no more")
        if not retried.was_waiting:
            text = f"callback {retried.callback.id} is {retried.callback.state}, so no attempt at"
            return error(409, "not_waiting", f"{text} it is to come: resend sends it once more")
        return web.json_response(callbacks.shown(retried.callback), status=202)

    async def retry_all(self, request: web.Request) -> web.Response:
        """Make the next attempts at all that are retrying now; answers which they are."""
        service_id = (await body_of(request, RetryBody, optional=True)).service_id
        retried = await self._retries.retry_all(service_id)
        return web.json_response({"callbacks": [*map(callbacks.shown, retried)]}, status=202)
