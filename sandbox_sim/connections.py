"""What the connections of our servers and clients add to those of asyncio and aiohttp."""

import asyncio
from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection


class SocketWriteBatcher:
    """Collects the socket writes of one loop iteration, and sends them at its end, in order.

    Waking a sleeping peer costs more than the send. Data that is sent directly after other data
    finds the peer awake.

    pending: what waits for the end of the iteration, in order.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.pending: list[tuple[asyncio.Transport, bytes]] = []

    def write(self, transport: asyncio.Transport, data: bytes) -> None:
        """Send data at the end of this iteration."""
        if not self.pending:
            self._loop.call_soon(self.flush)
        self.pending.append((transport, data))

    def flush(self) -> None:
        """Send the pending writes now."""
        pending, self.pending = self.pending, []
        for transport, data in pending:
            transport.write(data)


class KeepAliveConnector(aiohttp.TCPConnector):
    """Closes a kept connection over which data came that answers no request.

    aiohttp would read that data as the answer to the next request.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._used: WeakSet[ResponseHandler] = WeakSet()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """A connection for a request."""
        connection = await super().connect(req, traces, timeout)
        while (
            (protocol := connection.protocol) in self._used and protocol and protocol.should_close
        ):
            connection.close()
            connection = await super().connect(req, traces, timeout)
        if protocol is not None:
            self._used.add(protocol)
        return connection
