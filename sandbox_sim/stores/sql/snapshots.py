"""Reset and snapshots in SQL: a snapshot copies each table inside the database.

So a snapshot has exactly the rows that were there, of any size, and no row passes through this
process. It survives a later change of the tables: a restore writes the columns that table and copy
share.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from sandbox_sim.records.events import EventType
from sandbox_sim.records.snapshots import Snapshot
from sandbox_sim.records.transactions import STATUS_RETENTION, Status
from sandbox_sim.stores.sql import rows, schema
from sandbox_sim.stores.sql.rows import RowFormat, SqlBase, insert, select, to_micros, where

_SNAPSHOT: Final = RowFormat(Snapshot, records=rows.JSON)

_SNAPSHOTS = select((*_SNAPSHOT.columns, "number"), "snapshots", "{} ORDER BY number DESC")

_ADD = insert("snapshots", _SNAPSHOT.columns) + " RETURNING number"

# Tables whose rows are sums and not records.
_NOT_RECORDS = frozenset({"wallets", "journals"})

# A restored job is unclaimed and gets a new number, so that a server that had claimed it finds it
# lost.
_RENEWED_JOB_COLUMNS = frozenset({"number", "lease_until"})


class SqlSnapshots(SqlBase):
    """The part of a `Unit` that resets, saves and restores one service, or all."""

    async def reset(self, service_id: int | None) -> None:
        await self._lock_all()
        await self._delete_records(service_id)
        self._record_changes(EventType.RESET, service_id)

    async def _delete_records(self, service_id: int | None) -> None:
        condition, values = where({"service_id = ?": service_id})
        for table in _tables(service_id):
            await self._fetch(f"DELETE FROM {table} WHERE {condition}{_and_mode_s(table)}", *values)

    async def save_snapshot(self, name: str, service_id: int | None, now: datetime) -> Snapshot:
        await self._lock_all()
        await self.delete_snapshot(name)
        condition, values = where({"service_id = ?": service_id})
        counts = {}
        for table in _tables(service_id):
            statement = f"SELECT count(*) FROM {table} WHERE {condition}{_and_copied(table, now)}"
            ((counts[table],),) = await self._fetch(statement, *values)
        records = {table: count for table, count in counts.items() if table not in _NOT_RECORDS}
        snapshot = Snapshot(name, service_id, now, records)
        ((number,),) = await self._fetch(_ADD, *_SNAPSHOT.row(snapshot))
        # CREATE TABLE AS takes no parameters.
        condition = "1 = 1" if service_id is None else f"service_id = {service_id}"
        for table in filter(counts.get, counts):
            copy = _copy_name(table, number)
            chosen = f"SELECT * FROM {table} WHERE {condition}{_and_copied(table, now)}"
            await self._change_tables(f"CREATE TABLE {copy} AS {chosen}")
        return snapshot

    async def restore_snapshot(self, name: str, now: datetime) -> Snapshot | None:
        await self._lock_all()
        row = await self._fetch_one(_SNAPSHOTS.format("name = ?"), name)
        if row is None:
            return None
        *_, number = row
        snapshot = _SNAPSHOT.record(row)
        await self._delete_records(snapshot.service_id)
        shift = to_micros(now) - to_micros(snapshot.taken_at)
        for table in _tables(snapshot.service_id):
            await self._restore_table(table, _copy_name(table, number), shift)
        for before, conversion in schema.CONVERSIONS.items():
            copy = _copy_name(before, number)
            if await self._columns(copy):
                await self._fetch(conversion.format(source=copy, shift=shift))
        ((due_at,),) = await self._fetch("SELECT min(due_at) FROM jobs WHERE lease_until = 0")
        self.earliest_due = rows.maybe_datetime(due_at)
        self._record_changes(EventType.RESTORE, snapshot)
        return snapshot

    async def delete_snapshot(self, name: str) -> bool:
        await self._lock_all()
        statement = "DELETE FROM snapshots WHERE name = ? RETURNING number, service_id"
        found = await self._fetch(statement, name)
        for number, service_id in found:
            for table in (*_tables(service_id), *schema.CONVERSIONS):
                await self._change_tables(f"DROP TABLE IF EXISTS {_copy_name(table, number)}")
        return bool(found)

    async def snapshots(self) -> Sequence[Snapshot]:
        return [_SNAPSHOT.record(row) for row in await self._fetch(_SNAPSHOTS.format("1 = 1"))]

    async def _change_tables(self, statement: str) -> None:
        """Create or drop a table; the number in `origin` follows that of SQLite, which changes."""
        ((before,),) = await self._fetch(f"SELECT {self.IDENTITY}")
        await self._fetch(statement)
        await self._fetch(f"UPDATE origin SET identity = identity + ({self.IDENTITY} - {before})")

    async def _restore_table(self, table: str, copy: str, shift: int) -> None:
        """Copy the saved rows into the table, with `shift` microseconds added to every time."""
        names = await self._columns(copy)
        order = "ORDER BY number" if "number" in names else ""
        names &= await self._columns(table)
        if table == "jobs":
            names -= _RENEWED_JOB_COLUMNS
        values = {name: f"{name} + {shift}" if _is_time(name) else name for name in names}
        if "number" in names:
            values["number"] += f" + {await self._number_offset(table, copy)}"
        if names:
            chosen = f"SELECT {', '.join(values.values())} FROM {copy} {order}"
            await self._fetch(f"INSERT INTO {table} ({', '.join(values)}) {chosen}")

    async def _number_offset(self, table: str, copy: str) -> int:
        """What to add to the numbers of a copy, if SQLite has given one of them again since."""
        if not await self._fetch(f"SELECT 1 FROM {copy} JOIN {table} USING (number) LIMIT 1"):
            return 0
        ((last,),) = await self._fetch(f"SELECT max(number) FROM {table}")
        return int(last)

    async def _columns(self, table: str) -> set[str]:
        return {name for (name,) in await self._fetch(self.COLUMN_NAMES, table)}


def _tables(service_id: int | None) -> Iterable[str]:
    shared = schema.SHARED_TABLES if service_id is None else ()
    return (*schema.SERVICE_TABLES, *shared)


def _and_mode_s(table: str) -> str:
    """The rest of a condition that leaves out the rows of production mode."""
    condition = schema.MODE_S_ROWS.get(table)
    return "" if condition is None else f" AND {condition}"


def _and_copied(table: str, now: datetime) -> str:
    """The rest of a condition that leaves out what a snapshot does not copy (D40)."""
    chosen = _and_mode_s(table)
    if table == "transactions":
        bound = to_micros(now - STATUS_RETENTION)
        chosen += f" AND (initiated_at > {bound} OR status = '{Status.PENDING.value}')"
    return chosen


def _copy_name(table: str, number: int) -> str:
    return f"snapshot_{number}_{table}"


def _is_time(column: str) -> bool:
    return column == "at" or column.endswith("_at")
