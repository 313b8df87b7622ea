"""SMS messages, as a unit of work reads and writes them."""

from collections.abc import Sequence
from typing import Protocol

from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.sms.sms_messages import HistoryQuery, Message


class SmsRecords(Protocol):
    """The SMS messages of services."""

    async def add_messages(self, messages: Sequence[Message]) -> None:
        """Add one message, or all of a batch; at least one, all of one service and mode.

        Locks the messages of the service, so that their order has no gaps.
        """
        ...

    async def messages(
        self, service_id: int, subject: str, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> Sequence[Message]:
        """The message with this `processing_id`, or those of this `batch_id`, oldest first.

        Empty if there are none. Does not lock.
        """
        ...

    async def save_messages(self, messages: Sequence[Message]) -> None:
        """Replace messages that were added before. Does not lock."""
        ...

    async def list_messages(self, listing: Listing) -> Sequence[Message]:
        """A page of the messages of both modes, newest first; ids are `processing_id`.

        Does not lock.
        """
        ...

    async def history(self, query: HistoryQuery) -> tuple[Sequence[Message], int]:
        """A page of a service's messages, newest first, and how many match in all.

        Does not lock.
        """
        ...
