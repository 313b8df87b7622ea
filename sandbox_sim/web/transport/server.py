"""Serves the application over HTTP/1.1; requests of the interface bypass aiohttp's router.

A connection is served by the first of these that can be used:

1. `Connection`, the fast one, until a request is not plain;
2. `GatewayProtocol`, which extends aiohttp's protocol: after `Connection`, or from the start if the
   setting `fast_path` is off or aiohttp lacks an internal that `Connection` needs.

With TLS, a handshake comes before both: `tls.py`.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web

from sandbox_sim.sockets import SocketWriteBatcher
from sandbox_sim.web.api.responses import GatewayAnswer
from sandbox_sim.web.app import (
    BROWSER_PAGES,
    CLIENTS,
    CONTROL,
    CONTROL_PATHS,
    DISPATCHER,
    DRAIN,
    FAST_PATH,
    MAX_BODY_BYTES,
)
from sandbox_sim.web.transport import aiohttp_internals
from sandbox_sim.web.transport.aiohttp_internals import missing_names, parser_works
from sandbox_sim.web.transport.client_connections import ClientConnections
from sandbox_sim.web.transport.gateway_protocol import GatewayProtocol
from sandbox_sim.web.transport.requests import MAX_HEADER_BYTES, is_for_browser_pages
from sandbox_sim.web.transport.tls import Handshake

if TYPE_CHECKING:
    from sandbox_sim.web.api.dispatcher import Dispatcher
    from sandbox_sim.web.transport.fast_connection import Connection

log = logging.getLogger("sandbox_sim.serve")

# How long callbacks that are being sent, and then open requests, may take when the server stops.
# Together with closing the store that is less than ten seconds.
GRACE_S = 4.5
# An unused fast connection is closed after this time, or at most twice this time.
_UNUSED_S = 3600.0


class _Server(web.Server):
    """The factory of connections.

    dispatcher: makes what answers the requests of fast connections; None turns these off.
    """

    def __init__(
        self,
        handler: Any,
        dispatcher: "Callable[[], Dispatcher] | None",
        clients: ClientConnections,
        max_body_bytes: int,
        **options: Any,
    ) -> None:
        super().__init__(handler, **options)
        self._clients = clients
        self._opened: set[Connection] = set()
        self._connection: Callable[[], asyncio.Protocol] = self._gateway_protocol
        if dispatcher is not None:
            self._connection = partial(self._first_connection, dispatcher, max_body_bytes)
        self._unused_timer = self._loop.call_later(_UNUSED_S, self._close_unused)

    def __call__(self) -> asyncio.Protocol:  # type: ignore[override]
        """The protocol of a new connection."""
        return self._connection()

    def pre_shutdown(self) -> None:
        """Close idle connections."""
        self._unused_timer.cancel()
        for connection in tuple(self._opened):
            connection.close()
        super().pre_shutdown()

    async def shutdown(self, timeout: float | None = None) -> None:
        """Wait at most `timeout` seconds for open requests, then close all connections."""
        fast = [connection.shutdown(timeout) for connection in self._opened]
        # aiohttp waits twice: for the handler to end, and then for the task around it.
        half = None if timeout is None else timeout / 2
        await asyncio.gather(super().shutdown(half), *fast)

    def _first_connection(
        self, dispatcher: "Callable[[], Dispatcher]", max_body_bytes: int
    ) -> asyncio.Protocol:
        # Imported only here, because the import fails if aiohttp lacks an internal.
        from sandbox_sim.web.transport.fast_connection import Connection  # noqa: PLC0415

        self._connection = partial(
            Connection,
            dispatcher(),
            self._opened,
            self._clients,
            SocketWriteBatcher(self._loop),
            self._loop,
            self._gateway_protocol,
            max_body_bytes,
        )
        return self._connection()

    def _close_unused(self) -> None:
        for connection in tuple(self._opened):
            connection.close_unused()
        self._unused_timer = self._loop.call_later(_UNUSED_S, self._close_unused)

    def _gateway_protocol(self) -> GatewayProtocol:
        return GatewayProtocol(self, self._clients, loop=self._loop, **self._kwargs)


class GatewayRunner(web.AppRunner):
    """An `AppRunner` for the application of `make_app`. tls: None serves plain HTTP."""

    def __init__(
        self,
        app: web.Application,
        *,
        shutdown_timeout: float = GRACE_S,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(
            app,
            access_log=None,
            shutdown_timeout=shutdown_timeout,
            lingering_time=1,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            auto_decompress=False,
        )
        self._tls = tls

    @property
    def new_connection(self) -> Callable[[], asyncio.Protocol]:
        """A function that makes the protocol of a new connection; needs `setup` first."""
        server = super().server
        if server is None:
            raise RuntimeError("the runner is not set up")
        if self._tls is None:
            return server
        return partial(Handshake, server, self._tls, self.app[CLIENTS])

    @property
    def server(self) -> Any:
        """`new_connection` for a site of aiohttp, which listens with it; None before `setup`."""
        return None if super().server is None else self.new_connection

    async def setup(self) -> None:
        """Start the application, and choose how connections are served.

        Logs one line if the fast connection cannot be used. Raises `RuntimeError` if aiohttp lacks
        a name that is needed without the fast connection, too.
        """
        await super().setup()
        aiohttp_server = super().server
        missing = missing_names(aiohttp_internals.REQUIRED, aiohttp_server)
        if aiohttp_server is None or missing:
            text = _missing_text(missing)
            raise RuntimeError(f"{text}; install the version that pyproject.toml names")
        self._server = self._gateway_server(aiohttp_server)

    def _handler(self) -> Any:
        """The handler of requests: the control API, pages for browsers, else the dispatcher."""
        control_paths, dispatcher = self.app[CONTROL_PATHS], self.app[DISPATCHER]
        control, pages = self.app[CONTROL], self.app[BROWSER_PAGES]

        def handle(request: Any) -> Awaitable[web.StreamResponse | GatewayAnswer]:
            if request.path.startswith(control_paths):
                return control().handle(request)
            if is_for_browser_pages(request):
                return pages().answer(request)
            # A `GatewayAnswer` has everything that aiohttp's protocol uses of a response.
            return dispatcher().handle(request, request.read)

        return handle

    def _gateway_server(self, aiohttp_server: web.Server) -> _Server:
        return _Server(
            self._handler(),
            self.app[DISPATCHER] if self._can_be_fast(aiohttp_server) else None,
            self.app[CLIENTS],
            self.app[MAX_BODY_BYTES],
            request_factory=aiohttp_server.request_factory,
            **self._kwargs,
        )

    def _can_be_fast(self, aiohttp_server: web.Server) -> bool:
        """Whether the fast connection can be used; logs why not."""
        effect = "aiohttp's protocol serves every request, more slowly"
        if not self.app[FAST_PATH]:
            log.info("the setting fast_path is off: %s", effect)
            return False
        missing = missing_names(aiohttp_internals.FAST_CONNECTION, aiohttp_server)
        if not missing and not parser_works(asyncio.get_running_loop()):
            missing = ["a parser that reads requests as expected"]
        if missing:
            log.warning("%s: %s", _missing_text(missing), effect)
        return not missing

    async def cleanup(self) -> None:
        """Finish callbacks that are being sent, stop accepting, finish open requests.

        The callbacks come first, because this server may be their receiver.
        """
        await self.app[DRAIN](GRACE_S)
        await super().cleanup()


def _missing_text(missing: Sequence[str]) -> str:
    return f"aiohttp {aiohttp.__version__} lacks {', '.join(missing)}"
