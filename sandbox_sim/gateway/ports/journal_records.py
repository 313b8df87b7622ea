"""The journal of requests, as a unit of work reads and writes it."""

from collections.abc import Sequence
from typing import Protocol

from sandbox_sim.domain.control.journal import Entry
from sandbox_sim.domain.control.listing import Listing


class JournalRecords(Protocol):
    """The journal of requests. Entries without a service are kept as those of one more service."""

    async def add_entries(self, entries: Sequence[Entry]) -> None:
        """Add entries, in this order.

        The newest `KEPT_REQUESTS` of each service and mode are kept; those without a mode count as
        mode S. Locks the journals of their services, so add them last in a unit, or alone.
        """
        ...

    async def list_entries(self, listing: Listing) -> Sequence[Entry]:
        """A page of the journal of both modes, newest first. Does not lock."""
        ...

    async def clear_entries(self, service_id: int | None) -> int:
        """Empty the journal of a service, or of all (None), but for the entries of mode P.

        Returns how many it deleted. Locks the journals that it empties.
        """
        ...

    async def dropped_entries(self, service_id: int | None) -> int:
        """How many entries of a service, or of all (None), newer ones have replaced.

        Does not lock.
        """
        ...
