"""The open connections of clients: at most so many, and the one idle for longest makes room.

Each takes a file descriptor. Without a bound, clients that connect and send nothing would use up
all of them, and new clients would hang.
"""

import logging
from typing import Protocol

from sandbox_sim.gateway.log_throttle import LogThrottle
from sandbox_sim.gateway.ports import Clock

log = logging.getLogger("sandbox_sim.requests")


class ClientConnection(Protocol):
    """A connection, whichever protocol serves it."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        ...

    def abort(self) -> None:
        """Close it at once."""
        ...


class ClientConnections:
    """limit: how many may be open. The order is that of their last use."""

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit = limit
        self._open: dict[ClientConnection, None] = {}
        self._logged = LogThrottle(clock)

    def add(self, connection: ClientConnection) -> None:
        """A connection was opened; one over the limit closes the oldest idle one, or itself."""
        self._open[connection] = None
        if len(self._open) > self._limit:
            idle = next((each for each in self._open if each.is_idle), connection)
            del self._open[idle]
            if count := self._logged.due():
                text = "closed %d connections of clients, the oldest idle ones: %d may be open"
                log.warning(text, count, self._limit)
            idle.abort()

    def note_use(self, connection: ClientConnection) -> None:
        """Something came over a connection: it is the newest now."""
        if self._open.pop(connection, self) is None:
            self._open[connection] = None

    def remove(self, connection: ClientConnection) -> None:
        """A connection is closed, or another protocol serves it."""
        self._open.pop(connection, None)
