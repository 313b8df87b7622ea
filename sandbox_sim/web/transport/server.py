"""Serving the application: gateway requests go straight to the dispatcher.

So the router is asked only for what is ours, and requests that never become one, because aiohttp
cannot parse them, are answered in the interface's shape too.
"""

import asyncio
import logging
from collections.abc import Awaitable
from functools import partial
from typing import Any

from aiohttp import web

from sandbox_sim.domain.response_codes import Code, Reply
from sandbox_sim.web.api.dispatcher import Dispatcher
from sandbox_sim.web.api.responses import Answer, render
from sandbox_sim.web.app import CLIENTS, DISPATCHER, DRAIN, MAX_BODY_BYTES, OURS, is_goodbye
from sandbox_sim.web.transport.client_connections import ClientConnections
from sandbox_sim.web.transport.disconnection import DisconnectProtocol
from sandbox_sim.web.transport.fast_connection import MAX_HEADER_BYTES, Connection
from sandbox_sim.web.transport.write_batching import WriteBatcher

log = logging.getLogger("sandbox_sim.requests")

# How long callbacks on the wire, and then requests in hand, may take when the server stops: less
# than ten seconds together, in which the store is closed, too.
GRACE_S = 4.5
# Seconds after which, or twice as many, a connection is closed that nothing came over.
_UNUSED_S = 3600.0


class _Protocol(DisconnectProtocol):
    """aiohttp's own answer to what it cannot read would be plain text.

    clients: the open connections, this one too.
    """

    __slots__ = ("_clients",)

    def __init__(self, server: web.Server, clients: ClientConnections, **options: Any) -> None:
        super().__init__(server, **options)
        self._clients = clients

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._clients.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._clients.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._clients.note_use(self)
        super().data_received(data)

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return not self._request_in_progress

    def abort(self) -> None:
        """Close it at once."""
        if self.transport is not None:
            self.transport.abort()

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
            reply = Reply(Code.BAD_REQUEST, "D5", why, f"Bad request: {why}", http_status=status)
            log.info("%s: 400, by rule D5: %s", request.remote, why)
        elif is_goodbye(exc, request):
            reply = Reply(Code.SERVER_ERROR, "errors", "the client went away")
            log.debug("a client went away before it had its answer")
        else:
            reply = Reply(Code.SERVER_ERROR, "errors", "a fault of the server")
            log.error("a request failed", exc_info=exc)
        return render(reply, request_id="unread", keep_alive=False)  # type: ignore[return-value]

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log a fault; a body that was answered and still cannot be read to its end is none."""
        if not isinstance(kw.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **kw)


class _Server(web.Server):
    """A factory of connections; it knows those that aiohttp has not taken over."""

    def __init__(
        self,
        handler: Any,
        dispatcher: Dispatcher,
        clients: ClientConnections,
        max_body_bytes: int,
        **options: Any,
    ) -> None:
        super().__init__(handler, **options)
        self._clients = clients
        self._opened: set[Connection] = set()
        self._connection = partial(
            Connection,
            dispatcher,
            self._opened,
            clients,
            WriteBatcher(self._loop, self._opened),
            self._loop,
            self._successor,
            max_body_bytes,
        )
        self._sweeper = self._loop.call_later(_UNUSED_S, self._sweep)

    def __call__(self) -> Connection:  # type: ignore[override]
        return self._connection()

    def pre_shutdown(self) -> None:
        self._sweeper.cancel()
        for connection in tuple(self._opened):
            connection.close()
        super().pre_shutdown()

    async def shutdown(self, timeout: float | None = None) -> None:
        ours = [connection.shutdown(timeout) for connection in self._opened]
        # It waits twice: for requests in hand, and then for those that could go on all the same.
        half = None if timeout is None else timeout / 2
        await asyncio.gather(super().shutdown(half), *ours)

    def _sweep(self) -> None:
        for connection in tuple(self._opened):
            connection.close_unused()
        self._sweeper = self._loop.call_later(_UNUSED_S, self._sweep)

    def _successor(self) -> _Protocol:
        return _Protocol(self, self._clients, loop=self._loop, **self._kwargs)


class GatewayRunner(web.AppRunner):
    """An `AppRunner` for the application of `make_app`."""

    def __init__(self, app: web.Application, *, shutdown_timeout: float = GRACE_S) -> None:
        super().__init__(
            app,
            access_log=None,
            shutdown_timeout=shutdown_timeout,
            lingering_time=1,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )

    async def _make_server(self) -> web.Server:
        plain = await super()._make_server()
        ours, dispatcher, routed = self.app[OURS], self.app[DISPATCHER], plain.request_handler

        def handle(request: Any) -> Awaitable[web.StreamResponse | Answer]:
            # aiohttp's protocol asks a response for no more than an `Answer` has.
            chosen = routed if request.path.startswith(ours) else dispatcher.handle
            return chosen(request)

        return _Server(
            handle,
            dispatcher,
            self.app[CLIENTS],
            self.app[MAX_BODY_BYTES],
            request_factory=plain.request_factory,
            **self._kwargs,
        )

    async def cleanup(self) -> None:
        """Let callbacks on the wire arrive, stop accepting, finish what is in hand.

        The callbacks come first: their receiver may be this very server.
        """
        await self.app[DRAIN](GRACE_S)
        await super().cleanup()
