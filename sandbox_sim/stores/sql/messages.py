"""SMS messages and the journal of requests in SQL.

Each mode has counters of its own, so that requests of one do not replace those of the other.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from operator import itemgetter
from typing import Final

from sandbox_sim.records.events import EventType
from sandbox_sim.records.journal import KEPT_REQUESTS, NO_SERVICE, JournalEntry
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import HistoryQuery, Message
from sandbox_sim.stores.sql import rows
from sandbox_sim.stores.sql.rows import SqlBase, insert, select, to_datetime, to_micros, where
from sandbox_sim.stores.sql.schema import MODE_S_ROWS
from sandbox_sim.values.clients import ServiceMode

_DAY_MICROS: Final = to_micros(to_datetime(0) + timedelta(days=1))

_LAST_POSITION: Final = "SELECT max(position) FROM messages WHERE service_id = ? AND mode = ?"

_ADD: Final = insert("messages", ("position", *rows.MESSAGE.columns))

_SAVED: Final = ("status", "sent_at", "provider_code", "error_message", "processing_id")
_SAVE: Final = f"UPDATE messages SET {' = ?, '.join(_SAVED[:-1])} = ? WHERE processing_id = ?"
_saved_columns: Final = itemgetter(*map(rows.MESSAGE.columns.index, _SAVED))

_OF_SUBJECT: Final = select(
    rows.MESSAGE.columns,
    "messages",
    "service_id = ? AND mode = ? AND (processing_id = ? OR batch_id = ?) ORDER BY position",
)


class SqlMessages(SqlBase):
    """The part of a `Unit` that stores SMS."""

    async def add_messages(self, messages: Sequence[Message]) -> None:
        service_id, mode = messages[0].service_id, messages[0].mode
        await self._lock("messages", service_id, mode.value)
        last = await self._last_position(service_id, mode)
        numbered = enumerate(map(rows.MESSAGE.row, messages), last + 1)
        await self._execute_many(_ADD, [(position, *row) for position, row in numbered])
        self._record_changes(EventType.SMS, *messages)

    async def messages(
        self, service_id: int, subject: str, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> Sequence[Message]:
        found = await self._fetch(_OF_SUBJECT, service_id, mode.value, subject, subject)
        return [rows.MESSAGE.record(row) for row in found]

    async def save_messages(self, messages: Sequence[Message]) -> None:
        await self._execute_many(_SAVE, map(_saved_columns, map(rows.MESSAGE.row, messages)))
        self._record_changes(EventType.SMS, *messages)

    async def list_messages(self, listing: Listing) -> Sequence[Message]:
        found = await self._fetch_page("messages", rows.MESSAGE.columns, "processing_id", listing)
        return [rows.MESSAGE.record(row) for row in found]

    async def history(self, query: HistoryQuery) -> tuple[Sequence[Message], int]:
        values: Sequence[object]
        if query.filtered:
            condition, values = _history_filters(query)
            counted = f"SELECT count(*) FROM messages WHERE {condition}"
            ((total,),) = await self._fetch(counted, *values)
            page = f"{condition} ORDER BY position DESC LIMIT ? OFFSET ?"
            values = *values, query.limit, query.offset
        else:
            # Positions have no gaps, so every page costs the same.
            total = await self._last_position(query.service_id, query.mode)
            page = "service_id = ? AND mode = ? AND position <= ? AND position > ? "
            page += "ORDER BY position DESC"
            newest = total - query.offset
            values = query.service_id, query.mode.value, newest, newest - query.limit
        if query.offset >= total:
            return [], total
        found = await self._fetch(select(rows.MESSAGE.columns, "messages", page), *values)
        return [rows.MESSAGE.record(row) for row in found], total

    async def _last_position(self, service_id: int, mode: ServiceMode) -> int:
        row = await self._fetch_one(_LAST_POSITION, service_id, mode.value)
        return (row[0] or 0) if row else 0


def _history_filters(query: HistoryQuery) -> tuple[str, Sequence[object]]:
    """The filters as a condition with its values; both days are included whole."""
    first, last = query.start_date, query.end_date
    return where(
        {
            "service_id = ?": query.service_id,
            "mode = ?": query.mode.value,
            "status = ?": query.status and query.status.value,
            "batch_id = ?": query.batch_id,
            "created_at >= ?": first and to_micros(datetime.combine(first, time(), UTC)),
            "created_at < ?": last and to_micros(datetime.combine(last, time(), UTC)) + _DAY_MICROS,
        }
    )


ADD_ENTRY = insert("requests", rows.ENTRY.columns)

COUNT_KEPT: Final = (
    "INSERT INTO journals (service_id, mode, kept, dropped) VALUES (?, ?, ?, 0) "
    "ON CONFLICT (service_id, mode) DO UPDATE SET kept = journals.kept + excluded.kept "
    "RETURNING kept"
)

# For each mode. Postgres knows how many rows meet these conditions, so it reads the oldest by an
# index. Of `coalesce(mode, 'S') = 'S'` it expects few, and would read and sort all of the service.
DELETE_OLDEST: Final = {
    mode: "DELETE FROM requests WHERE number IN (SELECT number FROM requests "
    f"WHERE service_id = ? AND {condition} ORDER BY number LIMIT ?)"
    for mode, condition in (("S", MODE_S_ROWS["requests"]), ("P", "mode = 'P'"))
}

COUNT_DROPPED: Final = (
    "UPDATE journals SET kept = kept - ?, dropped = dropped + ? WHERE service_id = ? AND mode = ?"
)


class SqlJournal(SqlBase):
    """The part of a `Unit` that stores the journal."""

    async def add_entries(self, entries: Sequence[JournalEntry]) -> None:
        await self._execute_many(ADD_ENTRY, [rows.ENTRY.row(entry) for entry in entries])
        added = Counter(
            (entry.service_id or NO_SERVICE, (entry.mode or ServiceMode.SANDBOX).value)
            for entry in entries
        )
        # Every server locks the rows in this order, so that two servers cannot deadlock.
        for service_id, mode in sorted(added):
            journal = service_id, mode
            ((kept,),) = await self._fetch(COUNT_KEPT, *journal, added[journal])
            if (excess := kept - KEPT_REQUESTS) > 0:
                await self._fetch(DELETE_OLDEST[mode], service_id, excess)
                await self._fetch(COUNT_DROPPED, excess, excess, *journal)
        self._record_changes(EventType.REQUEST, *entries)

    async def list_entries(self, listing: Listing) -> Sequence[JournalEntry]:
        found = await self._fetch_page("requests", rows.ENTRY.columns, "id", listing)
        return [rows.ENTRY.record(row) for row in found]

    async def clear_entries(self, service_id: int | None) -> int:
        condition, values = where({"service_id = ?": service_id})
        await self._fetch(f"UPDATE journals SET kept = 0 WHERE {condition} AND mode = 'S'", *values)
        chosen = f"{condition} AND {MODE_S_ROWS['requests']}"
        return len(
            await self._fetch(f"DELETE FROM requests WHERE {chosen} RETURNING number", *values)
        )

    async def dropped_entries(self, service_id: int | None) -> int:
        condition, values = where({"service_id = ?": service_id})
        statement = f"SELECT coalesce(sum(dropped), 0) FROM journals WHERE {condition}"
        ((dropped,),) = await self._fetch(statement, *values)
        return int(dropped)
