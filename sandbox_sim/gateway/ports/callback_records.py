"""Callbacks and inboxes, as a unit of work reads and writes them."""

from collections.abc import Sequence
from typing import Protocol

from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.callbacks.inbox import InboxMessage
from sandbox_sim.domain.control.listing import Listing


class CallbackRecords(Protocol):
    """Callbacks with their attempts, and the built-in inboxes that receive them.

    Only `add_inbox_message` may lock. An attempt at a callback is safe all the same: only the
    server that has claimed its job saves one.
    """

    async def callback(self, service_id: int | None, callback_id: str) -> Callback | None:
        """One callback with its attempts, of this service or of any (None); None if not kept."""
        ...

    async def save_callback(self, callback: Callback) -> None:
        """Add it, or replace the one with its id.

        Of each service the newest `KEPT_CALLBACKS` that are finished are kept, and all others.
        """
        ...

    async def list_callbacks(self, listing: Listing) -> Sequence[Callback]:
        """A page of the callbacks, newest first."""
        ...

    async def services_with_held_callbacks(self) -> Sequence[int]:
        """The services with a callback that waits for a later one to overtake it, in any order."""
        ...

    async def release_callbacks(self, service_id: int, callback_id: str) -> Sequence[str]:
        """Mark this callback, and those of its service added before it, as not held any more.

        Returns the ids of those that were held, oldest first. The caller adds their jobs.
        """
        ...

    async def add_inbox_message(self, name: str, message: InboxMessage) -> None:
        """Add a delivery to the inbox of this name; the oldest messages make room for it.

        Locks all inboxes while it deletes messages because of their total size.
        """
        ...

    async def inbox_messages(self, name: str, listing: Listing) -> Sequence[InboxMessage]:
        """A page of an inbox, newest first; an inbox belongs to no service."""
        ...

    async def clear_inbox(self, name: str) -> int:
        """Empty an inbox; returns how many messages it had."""
        ...
