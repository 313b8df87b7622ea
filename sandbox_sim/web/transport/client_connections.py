"""Limits the open connections of clients: a new one over the limit closes the oldest idle one.

Each connection takes a file descriptor. Without a limit, clients that connect and send nothing
would use up all of them, and new clients would hang.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from sandbox_sim.events.activity_log import LogThrottle
from sandbox_sim.ports import Clock

log = logging.getLogger("sandbox_sim.requests")


class ClientConnection(Protocol):
    """A connection of a client; the protocols that serve one implement this."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""

    def abort(self) -> None:
        """Close the connection at once."""


class ClientConnections:
    """The open connections in the order of their last use. limit: how many may be open."""

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit = limit
        self._open: OrderedDict[ClientConnection, None] = OrderedDict()
        # Called when bytes come over an open connection: makes it the newest.
        self.note_use: Callable[[ClientConnection], None] = self._open.move_to_end
        self._log_throttle = LogThrottle(clock)

    @property
    def busy(self) -> int:
        """How many connections have a request that is being answered."""
        return sum(not each.is_idle for each in self._open)

    def add(self, connection: ClientConnection) -> None:
        """Add a new connection; over the limit, close the oldest idle one, or else the new one."""
        self._open[connection] = None
        if len(self._open) > self._limit:
            idle = next((each for each in self._open if each.is_idle), connection)
            del self._open[idle]
            if count := self._log_throttle.due():
                text = "closed %d connections of clients, the oldest idle ones: %d may be open"
                log.warning(text, count, self._limit)
            idle.abort()

    def remove(self, connection: ClientConnection) -> None:
        """Remove a connection that is closed, or that another protocol takes over."""
        self._open.pop(connection, None)
