"""Answers of one turn of the loop leave together.

A send wakes the client, and to wake one that sleeps costs many times what the send does. Sent right
after one another, answers find it awake. A client or two would only wait for nothing.
"""

import asyncio
from typing import Any, Final

# Measured: with so many connections, the sends that are saved are worth the turn of the loop.
MANY: Final = 3


class Cork:
    """Lets go, when a turn of the loop is over, of what connections wrote in it.

    connections: how many are open; fewer than `MANY` are not held up.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.connections = 0
        self._loop = loop
        self._written_to: list[CorkedTransport] = []

    def hold(self, transport: "CorkedTransport") -> None:
        """Something was written to it, for the first time in this turn."""
        if not self._written_to:
            self._loop.call_soon(self._let_go)
        self._written_to.append(transport)

    def _let_go(self) -> None:
        written_to, self._written_to = self._written_to, []
        for transport in written_to:
            transport.flush()


class CorkedTransport:
    """The transport that it is given, but for the time at which it sends."""

    def __init__(self, transport: asyncio.Transport, cork: Cork) -> None:
        self._transport = transport
        self._cork = cork
        self._held: list[bytes] = []
        # What aiohttp asks for with each request takes no detour.
        self.is_closing = transport.is_closing
        self.resume_reading = transport.resume_reading

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Have it sent when the turn is over, or at once where there are few connections."""
        if not self._held:
            if self._cork.connections < MANY:
                self._transport.write(data)
                return
            self._cork.hold(self)
        self._held.append(bytes(data))

    def writelines(self, lines: Any) -> None:
        """The same for all of them."""
        self.write(b"".join(lines))

    def flush(self) -> None:
        """Send what was written."""
        if self._held:
            held, self._held = self._held, []
            self._transport.write(b"".join(held))

    def close(self) -> None:
        """Send what was written, and close."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once; what was written is lost, as with every transport."""
        self._held.clear()
        self._transport.abort()
