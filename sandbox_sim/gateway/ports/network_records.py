"""What networks send us and what was said to them, as a unit of work reads and writes it."""

from collections.abc import Sequence
from typing import Protocol

from sandbox_sim.domain.networks.exchanges import Exchange
from sandbox_sim.domain.networks.message_parts import MessagePart
from sandbox_sim.domain.networks.notifications import KeptNotification, RawNotification


class NetworkRecords(Protocol):
    """Raw notifications, scrubbed exchanges, and the parts of messages.

    No reset and no snapshot touches them.
    """

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

    async def add_message_part(self, part: MessagePart) -> None:
        """Add a part that a network took; nothing changes where the attempt has this part."""
        ...

    async def save_message_part(self, part: MessagePart) -> None:
        """Replace a part that was read in this unit."""
        ...

    async def find_message_part(self, network: str, network_id: str) -> MessagePart | None:
        """The part that a network gave this identifier, the newest if it gave it twice.

        Does not lock; `attempt` does.
        """
        ...

    async def message_parts(self, attempt_id: str) -> Sequence[MessagePart]:
        """The parts of a message that its network took, in the order of the text. Does not lock."""
        ...
