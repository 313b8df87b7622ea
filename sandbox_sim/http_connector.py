"""The connections of HTTP clients that are kept for further requests."""

from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace


class KeepAliveConnector(aiohttp.TCPConnector):
    """Closes a kept connection over which data came that answers no request.

    aiohttp would read that data as the answer to the next request.
    """

    def __init__(self, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self._used: WeakSet[ResponseHandler] = WeakSet()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """A connection for a request."""
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol is None or protocol not in self._used or not protocol.should_close:
                break
            connection.close()
        if protocol is not None:
            self._used.add(protocol)
        return connection
