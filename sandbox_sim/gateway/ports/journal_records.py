"""The journal of requests, as a unit of work reads and writes it."""

from collections.abc import Sequence
from typing import Protocol

from sandbox_sim.domain.control.journal import Entry
from sandbox_sim.domain.control.listing import Listing


class JournalRecords(Protocol):
    """The journal of requests. Entries without a service are kept as those of one more service."""

    async def add_entries(self, entries: Sequence[Entry]) -> None:
        """Add entries, in this order; of each service the newest `KEPT_REQUESTS` are kept.

        Locks the journals of their services, so add them last in a unit, or alone.
        """
        ...

    async def list_entries(self, listing: Listing) -> Sequence[Entry]:
        """A page of the journal, newest first. Does not lock."""
        ...

    async def clear_entries(self, service_id: int | None) -> int:
        """Empty the journal of a service, or of all (None); returns how many entries it had.

        Locks the journals that it empties.
        """
        ...

    async def dropped_entries(self, service_id: int | None) -> int:
        """How many entries of a service, or of all (None), newer ones have replaced.

        Does not lock.
        """
        ...
