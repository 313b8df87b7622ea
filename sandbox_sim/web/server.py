"""Serving the application: requests that aiohttp cannot parse are answered in shape too."""

import logging

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from sandbox_sim.domain.codes import Reply
from sandbox_sim.web.gateway import render

log = logging.getLogger("sandbox_sim.requests")


class _Protocol(RequestHandler):
    """aiohttp's own answer to what it cannot read would be plain text."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that did not reach a handler, and close the connection."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was begun already")
        if status < 500:
            why = "the request is not HTTP that this server can read"
            reply = Reply("400", "D5", why, f"Bad request: {why}", http_status=status)
            log.info("%s: 400, by rule D5: %s", request.remote, why)
        else:
            reply = Reply("500", "errors", "a fault of the server")
            log.error("a request failed", exc_info=exc)
        response = render(reply)
        response.headers["X-Sandbox-Rule"] = reply.rule
        response.force_close()
        return response


class _Server(web.Server):
    """A protocol factory for connections."""

    def __call__(self) -> RequestHandler:
        return _Protocol(self, loop=self._loop, **self._kwargs)


class GatewayRunner(web.AppRunner):
    """An `AppRunner` whose connections speak `_Protocol`."""

    async def _make_server(self) -> web.Server:
        plain = await super()._make_server()
        return _Server(plain.request_handler, request_factory=plain.request_factory, **self._kwargs)
