"""The journal of requests in SQL: entries are written in bulk, and each service has a limit.

All entries are in one table, so that a list of both modes has their order. Each mode has counters
of its own, so that requests of one do not replace those of the other.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from sandbox_sim.adapters.stores.sql import rows
from sandbox_sim.adapters.stores.sql.schema import OF_MODE_S
from sandbox_sim.adapters.stores.sql.statements import SqlBase, insert, where
from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.control.journal import KEPT_REQUESTS, NO_SERVICE, Entry
from sandbox_sim.domain.control.listing import Listing

_ADD_ENTRY = insert("requests", rows.ENTRY)
_COUNT = (
    "INSERT INTO {0} (service_id, kept, dropped) VALUES (?, ?, 0) ON CONFLICT (service_id) "
    "DO UPDATE SET kept = {0}.kept + excluded.kept RETURNING kept"
)
_DELETE_OLDEST = (
    "DELETE FROM requests WHERE number IN "
    "(SELECT number FROM requests WHERE service_id = ? AND {} ORDER BY number LIMIT ?)"
)
_COUNT_DROPPED = "UPDATE {} SET kept = kept - ?, dropped = dropped + ? WHERE service_id = ?"
_COUNT_ALL_DROPPED = "SELECT coalesce(sum(dropped), 0) FROM {} WHERE {}"
# The counters of each mode, and which requests they count.
_LIVE: Final = "live_journals", "mode = 'P'"
_SANDBOX: Final = "journals", OF_MODE_S["requests"]


class SqlJournal(SqlBase):
    """The part of a `Unit` that stores the journal."""

    async def add_entries(self, entries: Sequence[Entry]) -> None:
        await self._execute_many(_ADD_ENTRY, [rows.from_entry(entry) for entry in entries])
        added = Counter(
            (
                _LIVE if entry.mode is ServiceMode.PRODUCTION else _SANDBOX,
                entry.service_id or NO_SERVICE,
            )
            for entry in entries
        )
        # Every server locks the rows in this order, so that two servers cannot deadlock.
        for (counters, of_mode), service_id in sorted(added):
            count = added[(counters, of_mode), service_id]
            ((kept,),) = await self._fetch(_COUNT.format(counters), service_id, count)
            if (excess := kept - KEPT_REQUESTS) > 0:
                await self._fetch(_DELETE_OLDEST.format(of_mode), service_id, excess)
                await self._fetch(_COUNT_DROPPED.format(counters), excess, excess, service_id)

    async def list_entries(self, listing: Listing) -> Sequence[Entry]:
        found = await self._listed("requests", rows.ENTRY, "id", listing)
        return [rows.to_entry(row) for row in found]

    async def clear_entries(self, service_id: int | None) -> int:
        condition, values = where({"service_id = ?": service_id})
        await self._fetch(f"UPDATE journals SET kept = 0 WHERE {condition}", *values)
        of_mode_s = OF_MODE_S["requests"]
        statement = f"DELETE FROM requests WHERE {condition} AND {of_mode_s} RETURNING number"
        return len(await self._fetch(statement, *values))

    async def dropped_entries(self, service_id: int | None) -> int:
        condition, values = where({"service_id = ?": service_id})
        dropped = 0
        for counters, _ in (_LIVE, _SANDBOX):
            statement = _COUNT_ALL_DROPPED.format(counters, condition)
            ((of_mode,),) = await self._fetch(statement, *values)
            dropped += int(of_mode)
        return dropped
