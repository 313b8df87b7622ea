"""aiohttp's protocol with errors in the interface's shape and a bound on open connections."""

import asyncio
import logging
from typing import Any

from aiohttp import web

from sandbox_sim.domain.response_codes import Code, Reply
from sandbox_sim.web.api.responses import render
from sandbox_sim.web.api.wire_mistakes import TLS_ON_A_PLAIN_PORT, is_tls
from sandbox_sim.web.app import is_goodbye
from sandbox_sim.web.transport.client_connections import ClientConnections
from sandbox_sim.web.transport.disconnection import DisconnectProtocol

log = logging.getLogger("sandbox_sim.requests")


class GatewayProtocol(DisconnectProtocol):
    """Serves a connection that the fast `Connection` does not serve, or no longer serves.

    clients: all open connections; this one adds and removes itself.
    """

    __slots__ = ("_clients",)

    def __init__(self, server: web.Server, clients: ClientConnections, **options: Any) -> None:
        super().__init__(server, **options)
        self._clients = clients

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection."""
        super().connection_made(transport)
        self._clients.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop counting it."""
        self._clients.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the bytes; the connection is now the one used last."""
        self._clients.note_use(self)
        super().data_received(data)

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return not self._request_in_progress

    def abort(self) -> None:
        """Close the connection at once."""
        if self.transport is not None:
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that did not reach a handler, and close the connection.

        aiohttp's own answer is plain text. Raises `ConnectionError` if an answer has begun.
        """
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was begun already")
        if status < 500:
            why = "the request is not HTTP that this server can read"
            if is_tls(exc):
                why = TLS_ON_A_PLAIN_PORT
            reply = Reply(Code.BAD_REQUEST, "D5", why, f"Bad request: {why}", http_status=status)
            log.info("%s: 400, by rule D5: %s", request.remote, why)
        elif is_goodbye(exc, request):
            reply = Reply(Code.SERVER_ERROR, "errors", "the client went away")
            log.debug("a client went away before it had its answer")
        else:
            reply = Reply(Code.SERVER_ERROR, "errors", "a fault of the server")
            log.error("a request failed", exc_info=exc)
        answer = render(reply, request_id="unread")
        answer.keep_alive = False
        return answer  # type: ignore[return-value]

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log a fault of the server.

        `RequestPayloadError` is none: the request was answered before its body proved unreadable.
        """
        if not isinstance(kw.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **kw)
