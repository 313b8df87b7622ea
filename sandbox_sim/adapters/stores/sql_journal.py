"""The journal of requests in SQL: written in bulk, bounded for each service by and by."""

from collections.abc import Sequence

from sandbox_sim.adapters.stores import rows
from sandbox_sim.adapters.stores.sql_base import SqlBase, insert, where
from sandbox_sim.domain.journal import KEPT_REQUESTS, NO_SERVICE, Entry
from sandbox_sim.domain.listing import Listing

_ADD_ENTRY = insert("requests", rows.ENTRY)
# By the index on service_id and number, so it takes as long as it takes to count to the bound.
_MAKE_ROOM = (
    "DELETE FROM requests WHERE service_id = ? AND number <= (SELECT number FROM requests "
    "WHERE service_id = ? ORDER BY number DESC LIMIT 1 OFFSET ?) RETURNING number"
)
_ADD_DROPPED = (
    "INSERT INTO dropped_requests (service_id, count) VALUES (?, ?) ON CONFLICT (service_id) "
    "DO UPDATE SET count = dropped_requests.count + excluded.count"
)


class SqlJournal(SqlBase):
    """The part of a `Unit` that keeps the journal."""

    async def add_entries(self, entries: Sequence[Entry]) -> None:
        await self._each(_ADD_ENTRY, [rows.from_entry(entry) for entry in entries])
        # In this order everywhere, so that two servers wait for one another one way only.
        for service_id in sorted({entry.service_id or NO_SERVICE for entry in entries}):
            gone = await self._rows(_MAKE_ROOM, service_id, service_id, KEPT_REQUESTS)
            if gone:
                await self._rows(_ADD_DROPPED, service_id, len(gone))

    async def list_entries(self, listing: Listing) -> Sequence[Entry]:
        found = await self._listed("requests", rows.ENTRY, "id", listing)
        return [rows.to_entry(row) for row in found]

    async def clear_entries(self, service_id: int | None) -> int:
        condition, values = where({"service_id = ?": service_id})
        statement = f"DELETE FROM requests WHERE {condition} RETURNING number"
        return len(await self._rows(statement, *values))

    async def dropped_entries(self, service_id: int | None) -> int:
        condition, values = where({"service_id = ?": service_id})
        statement = f"SELECT coalesce(sum(count), 0) FROM dropped_requests WHERE {condition}"
        row = await self._row(statement, *values)
        return int(row[0]) if row else 0
