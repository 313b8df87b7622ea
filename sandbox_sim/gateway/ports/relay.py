"""How servers that share a store exchange events."""

from collections.abc import Callable, Sequence
from typing import Protocol

from sandbox_sim.domain.control.events import Event


class Relay(Protocol):
    """How servers that share a store tell one another what happened, for the live feed."""

    @property
    def has_remote_readers(self) -> bool:
        """Whether another server has readers."""
        ...

    def publish(self, events: Sequence[Event]) -> None:
        """Let the others hear of what happened here; never waits."""
        ...

    def listen(self, heard: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        """Call `heard` with what happens elsewhere, until what is returned is called."""
        ...
