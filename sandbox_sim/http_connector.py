"""The connections of HTTP clients that are kept for further requests."""

from typing import Final
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

# The connections that had a request before.
_USED: Final = WeakSet[ResponseHandler]()


class KeepAliveConnector(aiohttp.TCPConnector):
    """Closes a kept connection over which data came that answers no request.

    aiohttp would read that data as the answer to the next request.
    """

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """A connection for a request."""
        connection = await super().connect(req, traces, timeout)
        while (protocol := connection.protocol) in _USED and protocol and protocol.should_close:
            connection.close()
            connection = await super().connect(req, traces, timeout)
        if protocol is not None:
            _USED.add(protocol)
        return connection
