"""What networks send us and what was said to them, as a unit of work reads and writes it."""

from collections.abc import Sequence
from typing import Protocol

from sandbox_sim.domain.networks.exchanges import Exchange
from sandbox_sim.domain.networks.notifications import KeptNotification, RawNotification


class NetworkRecords(Protocol):
    """Raw notifications and scrubbed exchanges. No reset and no snapshot touches them."""

    async def add_raw_notification(self, raw: RawNotification) -> int:
        """Store a notification as it came; returns its number, above 0."""
        ...

    async def raw_notification(self, number: int) -> KeptNotification | None:
        """The notification with this number. Does not lock: its job has one owner."""
        ...

    async def save_raw_notification(self, kept: KeptNotification) -> None:
        """Change what was done with one; the notification itself stays as it came."""
        ...

    async def add_exchanges(self, exchanges: Sequence[Exchange]) -> None:
        """Add requests to networks with their answers, scrubbed."""
        ...

    async def exchanges_of(self, attempt_id: str) -> Sequence[Exchange]:
        """The exchanges of an attempt, oldest first. Does not lock."""
        ...
