"""TLS: does the handshake of a new connection, and then passes it to the protocol that serves it.

asyncio can do the handshake before it calls a protocol. But then the connection would not be
counted, and clients that connect and send nothing could use up all file descriptors.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sandbox_sim.web.transport.client_connections import ClientConnections

log = logging.getLogger("sandbox_sim.requests")

# Seconds of real time for the handshake; and for the end of TLS, which begins as soon as the last
# answer is written: a slow client has not read all of it by then.
_HANDSHAKE_S: Final = 10.0
_SHUTDOWN_S: Final = 30.0
_USE_HTTPS: Final = "a client spoke plain HTTP to this port, which serves HTTPS only: use https://"


@dataclass(eq=False, repr=False)
class Handshake(asyncio.Protocol):
    """A connection until its handshake is done. `clients` may close it before that.

    successor: makes the protocol that serves the connection afterwards.
    """

    is_idle = True

    successor: Callable[[], asyncio.Protocol]
    context: ssl.SSLContext
    clients: ClientConnections

    def __post_init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None  # the event loop keeps no reference
        # Bytes that come after the handshake, before the next protocol takes over.
        self._early_chunks: list[bytes] = []
        self._half_closed = False
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the handshake."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("a stream transport is needed")
        self._transport = transport
        transport.pause_reading()  # the bytes of the handshake are for the TLS protocol
        self.clients.add(self)
        self._task = asyncio.get_running_loop().create_task(self._do_handshake(transport))

    def data_received(self, data: bytes) -> None:
        """Keep bytes that came with the end of the handshake."""
        self._early_chunks.append(data)

    def eof_received(self) -> bool:
        """Note that the client has ended its side; TLS then ends ours too."""
        self._half_closed = True
        return False

    def connection_lost(self, _exc: BaseException | None) -> None:
        """Stop counting the connection."""
        self._lost = True
        self.clients.remove(self)

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    async def _do_handshake(self, transport: asyncio.Transport) -> None:
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport,
                self,
                self.context,
                server_side=True,
                ssl_handshake_timeout=_HANDSHAKE_S,
                ssl_shutdown_timeout=_SHUTDOWN_S,
            )
        except OSError as error:  # also TLS errors, timeouts and lost connections
            transport.abort()
            self._log_failure(error)
            return
        finally:
            self.clients.remove(self)
        if secured is not None and not self._lost:
            self._hand_over(secured)

    def _hand_over(self, secured: asyncio.Transport) -> None:
        """Pass the connection to the next protocol, with the bytes that have already come."""
        protocol = self.successor()
        secured.set_protocol(protocol)
        protocol.connection_made(secured)
        for chunk in self._early_chunks:
            protocol.data_received(chunk)
        if self._half_closed and not protocol.eof_received():
            secured.close()

    def _log_failure(self, error: OSError) -> None:
        """Log a failed handshake; at level info if the client must use another address."""
        if getattr(error, "reason", None) == "HTTP_REQUEST":
            log.info(_USE_HTTPS)
        else:
            log.debug("a TLS handshake failed: %s", error)
