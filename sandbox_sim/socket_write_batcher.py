"""Collects what is written to sockets in one iteration of the event loop: answers and callbacks."""

import asyncio


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
