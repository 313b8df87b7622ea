"""The journal of requests in SQL: entries are written in bulk, and each service has a limit."""

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
_DELETE_OLDEST = (
    "DELETE FROM requests WHERE number IN "
    "(SELECT number FROM requests WHERE service_id = ? ORDER BY number LIMIT ?)"
)
_COUNT_DROPPED = "UPDATE journals SET kept = kept - ?, dropped = dropped + ? WHERE service_id = ?"


class SqlJournal(SqlBase):
    """The part of a `Unit` that stores the journal."""

    async def add_entries(self, entries: Sequence[Entry]) -> None:
        await self._execute_many(_ADD_ENTRY, [rows.from_entry(entry) for entry in entries])
        added = Counter(entry.service_id or NO_SERVICE for entry in entries)
        # Every server locks the rows in this order, so that two servers cannot deadlock.
        for service_id in sorted(added):
            ((kept,),) = await self._fetch(_COUNT, service_id, added[service_id])
            if (excess := kept - KEPT_REQUESTS) > 0:
                await self._fetch(_DELETE_OLDEST, service_id, excess)
                await self._fetch(_COUNT_DROPPED, excess, excess, service_id)

    async def list_entries(self, listing: Listing) -> Sequence[Entry]:
        found = await self._listed("requests", rows.ENTRY, "id", listing)
        return [rows.to_entry(row) for row in found]

    async def clear_entries(self, service_id: int | None) -> int:
        condition, values = where({"service_id = ?": service_id})
        await self._fetch(f"UPDATE journals SET kept = 0 WHERE {condition}", *values)
        statement = f"DELETE FROM requests WHERE {condition} RETURNING number"
        return len(await self._fetch(statement, *values))

    async def dropped_entries(self, service_id: int | None) -> int:
        condition, values = where({"service_id = ?": service_id})
        statement = f"SELECT coalesce(sum(dropped), 0) FROM journals WHERE {condition}"
        row = await self._fetch_one(statement, *values)
        return int(row[0]) if row else 0
