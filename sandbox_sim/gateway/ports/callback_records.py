"""Callbacks and inboxes, as a unit of work sees them."""

from collections.abc import Sequence
from typing import Protocol

from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.callbacks.inbox import InboxMessage
from sandbox_sim.domain.control.listing import Listing


class CallbackRecords(Protocol):
    """Callbacks with their attempts, and the built-in inboxes that receive them."""

    async def callback(self, service_id: int | None, callback_id: str) -> Callback | None:
        """One callback with its attempts, of this service or of any."""
        ...

    async def save_callback(self, callback: Callback) -> None:
        """Add or replace."""
        ...

    async def list_callbacks(self, listing: Listing) -> Sequence[Callback]:
        """Callbacks, newest first."""
        ...

    async def services_with_held_callbacks(self) -> Sequence[int]:
        """The services that have callbacks which are held back."""
        ...

    async def release_callbacks(self, service_id: int, callback_id: str) -> Sequence[str]:
        """Hold back neither this callback nor those that came before it; which ones were held."""
        ...

    async def add_inbox_message(self, name: str, message: InboxMessage) -> None:
        """A delivery came in."""
        ...

    async def inbox_messages(self, name: str, listing: Listing) -> Sequence[InboxMessage]:
        """A stretch of what lies in an inbox, which is of no service, newest first."""
        ...

    async def clear_inbox(self, name: str) -> int:
        """Empty an inbox; how many messages it had."""
        ...
