"""Messages, as a unit of work sees them."""

from collections.abc import Sequence
from typing import Protocol

from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.sms.sms_messages import HistoryQuery, Message


class SmsRecords(Protocol):
    """Messages."""

    async def add_messages(self, messages: Sequence[Message]) -> None:
        """Save a send: one message, or all of a batch."""
        ...

    async def messages(self, service_id: int, subject: str) -> Sequence[Message]:
        """The message with this `processing_id`, or those of this `batch_id`."""
        ...

    async def save_messages(self, messages: Sequence[Message]) -> None:
        """Replace messages that were added before."""
        ...

    async def list_messages(self, listing: Listing) -> Sequence[Message]:
        """Messages, newest first; ids are `processing_id`."""
        ...

    async def history(self, query: HistoryQuery) -> tuple[Sequence[Message], int]:
        """One page, newest first, and how many messages the filters admit in all."""
        ...
