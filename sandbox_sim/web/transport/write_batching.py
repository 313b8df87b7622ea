"""Batch the writes of one loop iteration: waking a sleeping client costs more than the send.

Answers that are sent right after one another find the client awake. With only one or two clients
there is nothing to gain, so their answers are sent at once.
"""

import asyncio
from collections.abc import Sized
from typing import Final

# Measured: with so many connections, the sends that are saved are worth the turn of the loop.
MANY: Final = 3


class WriteBatcher:
    """Sends when a turn of the loop is over what was written in it.

    connections: those that are open; fewer than `MANY` are not held up.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, connections: Sized) -> None:
        self._loop = loop
        self._connections = connections
        self._held: list[tuple[asyncio.Transport, bytes]] = []

    def write(self, transport: asyncio.Transport, data: bytes) -> None:
        """Have it sent when the turn is over, or at once where there are few connections."""
        if not self._held:
            if len(self._connections) < MANY:
                transport.write(data)
                return
            self._loop.call_soon(self.let_go)
        self._held.append((transport, data))

    def let_go(self) -> None:
        """Send it now."""
        held, self._held = self._held, []
        for transport, data in held:
            transport.write(data)
