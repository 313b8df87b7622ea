"""SMS messages in SQL; each mode has a table of its own."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from operator import attrgetter
from typing import Final, NamedTuple

from sandbox_sim.adapters.stores.sql import rows
from sandbox_sim.adapters.stores.sql.rows import to_datetime, to_micros
from sandbox_sim.adapters.stores.sql.statements import Beside, SqlBase, insert, select
from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.control.listing import Listing, merged
from sandbox_sim.domain.sms.sms_messages import HistoryQuery, Message

_DAY_MICROS: Final = to_micros(to_datetime(0) + timedelta(days=1))


class _Table(NamedTuple):
    """The statements of one mode; `beside` is how its list goes on after a message of the other."""

    name: str
    beside: Beside

    @property
    def last_position(self) -> str:
        return f"SELECT max(position) FROM {self.name} WHERE service_id = ?"

    @property
    def add(self) -> str:
        return insert(self.name, ("position", *rows.MESSAGE))

    @property
    def save(self) -> str:
        return (
            f"UPDATE {self.name} SET status = ?, sent_at = ?, provider_code = ?, "
            "error_message = ? WHERE processing_id = ?"
        )

    @property
    def of_subject(self) -> str:
        condition = "service_id = ? AND (processing_id = ? OR batch_id = ?) ORDER BY position"
        return select(rows.MESSAGE, self.name, condition)


_TABLES: Final[Mapping[ServiceMode, _Table]] = {
    ServiceMode.PRODUCTION: _Table("live_messages", Beside("messages", "created_at", "<")),
    ServiceMode.SANDBOX: _Table("messages", Beside("live_messages", "created_at", "<=")),
}


class SqlMessages(SqlBase):
    """The part of a `Unit` that stores SMS."""

    async def add_messages(self, messages: Sequence[Message]) -> None:
        service_id, table = messages[0].service_id, _TABLES[messages[0].mode]
        await self._lock(table.name, service_id)
        last = await self._last_position(table, service_id)
        numbered = enumerate(map(rows.from_message, messages), last + 1)
        await self._execute_many(table.add, [(position, *row) for position, row in numbered])

    async def messages(
        self, service_id: int, subject: str, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> Sequence[Message]:
        found = await self._fetch(_TABLES[mode].of_subject, service_id, subject, subject)
        return [rows.to_message(row, mode) for row in found]

    async def save_messages(self, messages: Sequence[Message]) -> None:
        for mode, table in _TABLES.items():
            written = [rows.from_message(each) for each in messages if each.mode is mode]
            changes = [(*row[-5:-4], *row[-3:], row[0]) for row in written]
            if changes:
                await self._execute_many(table.save, changes)

    async def list_messages(self, listing: Listing) -> Sequence[Message]:
        pages = []
        for mode, (name, beside) in _TABLES.items():
            found = await self._listed(name, rows.MESSAGE, "processing_id", listing, beside=beside)
            pages.append([rows.to_message(row, mode) for row in found])
        return merged(pages, attrgetter("created_at"), listing.limit)

    async def history(self, query: HistoryQuery) -> tuple[Sequence[Message], int]:
        table = _TABLES[query.mode]
        values: list[object]
        if query.filtered:
            condition, values = _history_filters(query)
            count = await self._fetch_one(
                f"SELECT count(*) FROM {table.name} WHERE {condition}", *values
            )
            total = count[0] if count else 0
            page = f"{condition} ORDER BY position DESC LIMIT ? OFFSET ?"
            values += [query.limit, query.offset]
        else:
            # Positions have no gaps, so every page costs the same.
            total = await self._last_position(table, query.service_id)
            page = "service_id = ? AND position <= ? AND position > ? ORDER BY position DESC"
            newest = total - query.offset
            values = [query.service_id, newest, newest - query.limit]
        if query.offset >= total:
            return [], total
        found = await self._fetch(select(rows.MESSAGE, table.name, page), *values)
        return [rows.to_message(row, query.mode) for row in found], total

    async def _last_position(self, table: _Table, service_id: int) -> int:
        row = await self._fetch_one(table.last_position, service_id)
        return (row[0] or 0) if row else 0


def _history_filters(query: HistoryQuery) -> tuple[str, list[object]]:
    """The filters as a condition with its values; both days are included whole."""
    found: list[tuple[str, object]] = [("service_id = ?", query.service_id)]
    if query.status is not None:
        found.append(("status = ?", query.status.value))
    if query.batch_id is not None:
        found.append(("batch_id = ?", query.batch_id))
    if query.start_date is not None:
        first = datetime.combine(query.start_date, time(), UTC)
        found.append(("created_at >= ?", to_micros(first)))
    if query.end_date is not None:
        first = datetime.combine(query.end_date, time(), UTC)
        found.append(("created_at < ?", to_micros(first) + _DAY_MICROS))
    return " AND ".join(each for each, _ in found), [value for _, value in found]
