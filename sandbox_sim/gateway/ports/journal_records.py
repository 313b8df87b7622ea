"""The journal of requests, as a unit of work sees it."""

from collections.abc import Sequence
from typing import Protocol

from sandbox_sim.domain.control.journal import Entry
from sandbox_sim.domain.control.listing import Listing


class JournalRecords(Protocol):
    """The journal of requests."""

    async def add_entries(self, entries: Sequence[Entry]) -> None:
        """Write into the journal; of each service the newest `KEPT_REQUESTS` are kept."""
        ...

    async def list_entries(self, listing: Listing) -> Sequence[Entry]:
        """Entries of the journal, newest first."""
        ...

    async def clear_entries(self, service_id: int | None) -> int:
        """Empty the journal of a service, or of all; how many entries it had."""
        ...

    async def dropped_entries(self, service_id: int | None) -> int:
        """How many older entries, of a service or of all, had to make room."""
        ...
