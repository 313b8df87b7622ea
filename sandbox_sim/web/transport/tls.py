"""TLS: a new connection first shakes hands, and then the protocol that serves it takes it over.

asyncio can do the handshake before it calls any protocol. Such a connection would be counted
nowhere, so clients that connect and send nothing would use up all file descriptors.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Final

from sandbox_sim.web.transport.client_connections import ClientConnections

log = logging.getLogger("sandbox_sim.requests")

# Seconds of real time that a client has for the handshake, and for the goodbye of TLS.
_HANDSHAKE_S: Final = 10.0
_GOODBYE_S: Final = 1.0
_USE_HTTPS: Final = "a client spoke plain HTTP to this port, which takes HTTPS only: use https://"


class Handshake(asyncio.Protocol):
    """A connection until its handshake is done. `clients` may close it before that.

    plain: makes the protocol that serves the connection then.
    """

    is_idle = True

    def __init__(
        self,
        plain: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext,
        clients: ClientConnections,
    ) -> None:
        self._plain = plain
        self._context = context
        self._clients = clients
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None  # the event loop keeps no reference
        # What comes after the handshake and before the next protocol is there.
        self._early: list[bytes] = []
        self._half_closed = False
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("a stream transport is needed")
        self._transport = transport
        transport.pause_reading()  # the bytes of the handshake are for the TLS protocol
        self._clients.add(self)
        self._task = asyncio.get_running_loop().create_task(self._shake_hands(transport))

    def data_received(self, data: bytes) -> None:
        """Keep what came with the end of the handshake."""
        self._early.append(data)

    def eof_received(self) -> bool:
        """The client has ended its side; TLS then ends ours too."""
        self._half_closed = True
        return False

    def connection_lost(self, _exc: BaseException | None) -> None:
        """The client is gone."""
        self._lost = True
        self._clients.remove(self)

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    async def _shake_hands(self, transport: asyncio.Transport) -> None:
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport,
                self,
                self._context,
                server_side=True,
                ssl_handshake_timeout=_HANDSHAKE_S,
                ssl_shutdown_timeout=_GOODBYE_S,
            )
        except OSError as error:  # a TLS error, a timeout and a lost connection are such
            transport.abort()
            self._note(error)
            return
        finally:
            self._clients.remove(self)
        if secured is not None and not self._lost:
            self._hand_over(secured)

    def _hand_over(self, secured: asyncio.Transport) -> None:
        """Let the next protocol serve the connection, with what has come already."""
        served = self._plain()
        secured.set_protocol(served)
        served.connection_made(secured)
        for piece in self._early:
            served.data_received(piece)
        if self._half_closed and not served.eof_received():
            secured.close()

    def _note(self, error: OSError) -> None:
        """Log a failed handshake, at info where the client has to use another address."""
        if getattr(error, "reason", None) == "HTTP_REQUEST":
            log.info(_USE_HTTPS)
        else:
            log.debug("a TLS handshake failed: %s", error)
