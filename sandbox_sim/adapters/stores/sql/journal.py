"""The journal of requests in SQL: written in bulk, bounded for each service by and by."""

from collections import Counter
from collections.abc import Sequence

from sandbox_sim.adapters.stores.sql import rows
from sandbox_sim.adapters.stores.sql.statements import SqlBase, insert, where
from sandbox_sim.domain.control.journal import KEPT_REQUESTS, NO_SERVICE, Entry
from sandbox_sim.domain.control.listing import Listing

_ADD_ENTRY = insert("requests", rows.ENTRY)
_COUNT = (
    "INSERT INTO journals (service_id, kept, dropped) VALUES (?, ?, 0) ON CONFLICT (service_id) "
    "DO UPDATE SET kept = journals.kept + excluded.kept RETURNING kept"
)
_MAKE_ROOM = (
    "DELETE FROM requests WHERE number IN "
    "(SELECT number FROM requests WHERE service_id = ? ORDER BY number LIMIT ?)"
)
_COUNT_DROPPED = "UPDATE journals SET kept = kept - ?, dropped = dropped + ? WHERE service_id = ?"


class SqlJournal(SqlBase):
    """The part of a `Unit` that keeps the journal."""

    async def add_entries(self, entries: Sequence[Entry]) -> None:
        await self._each(_ADD_ENTRY, [rows.from_entry(entry) for entry in entries])
        added = Counter(entry.service_id or NO_SERVICE for entry in entries)
        # In this order everywhere, so that two servers wait for one another one way only.
        for service_id in sorted(added):
            ((kept,),) = await self._rows(_COUNT, service_id, added[service_id])
            if (gone := kept - KEPT_REQUESTS) > 0:
                await self._rows(_MAKE_ROOM, service_id, gone)
                await self._rows(_COUNT_DROPPED, gone, gone, service_id)

    async def list_entries(self, listing: Listing) -> Sequence[Entry]:
        found = await self._listed("requests", rows.ENTRY, "id", listing)
        return [rows.to_entry(row) for row in found]

    async def clear_entries(self, service_id: int | None) -> int:
        condition, values = where({"service_id = ?": service_id})
        await self._rows(f"UPDATE journals SET kept = 0 WHERE {condition}", *values)
        statement = f"DELETE FROM requests WHERE {condition} RETURNING number"
        return len(await self._rows(statement, *values))

    async def dropped_entries(self, service_id: int | None) -> int:
        condition, values = where({"service_id = ?": service_id})
        statement = f"SELECT coalesce(sum(dropped), 0) FROM journals WHERE {condition}"
        row = await self._row(statement, *values)
        return int(row[0]) if row else 0
