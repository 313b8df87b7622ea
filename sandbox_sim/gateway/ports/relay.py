"""How servers that share a store exchange events."""

from collections.abc import Callable, Sequence
from typing import Protocol

from sandbox_sim.domain.control.events import Event


class Relay(Protocol):
    """Sends events to the servers that share a store, and receives theirs."""

    @property
    def has_remote_readers(self) -> bool:
        """Whether another server listens."""
        ...

    def publish(self, events: Sequence[Event]) -> None:
        """Send events of this server to the others; never waits."""
        ...

    def listen(self, heard: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        """Call `heard` with the events of other servers; returns a function that stops it."""
        ...
