"""The sockets of clients and servers: writes that are sent together, and connections that are kept.

`SocketWriteBatcher` writes answers and callbacks, `KeepAliveConnector` opens connections to
receivers and networks.
"""

import asyncio
from typing import Any, Final
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


# The connections that had a request before.
_USED: Final = WeakSet[ResponseHandler]()


class KeepAliveConnector(aiohttp.TCPConnector):
    """Closes a kept connection over which data came that answers no request.

    aiohttp would read that data as the answer to the next request.
    """

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """A connection for a request."""
        connection = await super().connect(req, traces, timeout)
        while (protocol := connection.protocol) in _USED and protocol and protocol.should_close:
            connection.close()
            connection = await super().connect(req, traces, timeout)
        if protocol is not None:
            _USED.add(protocol)
        return connection
