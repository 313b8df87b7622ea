"""Beginning anew, and snapshots, in SQL: of each table a copy that the database makes for itself.

So a snapshot holds exactly what was there, however much it is, and no row of it comes through here.
It outlasts a change of the tables: what is put back is the columns that table and copy both have.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from sandbox_sim.adapters.stores.sql import schema
from sandbox_sim.adapters.stores.sql.rows import Row, micros, moment
from sandbox_sim.adapters.stores.sql.statements import SqlBase, insert, where
from sandbox_sim.domain.control.snapshots import Snapshot

_SNAPSHOTS = "SELECT number, name, service_id, taken_at, records FROM snapshots"
_ADD = insert("snapshots", ("name", "service_id", "taken_at", "records")) + " RETURNING number"
# Their rows are sums, and no records.
_SUMS = frozenset({"balances", "journals"})
# Nobody has claimed a job that is put back; whoever had can tell by the number that it is lost.
_NEW_IN_A_JOB = frozenset({"number", "lease_until"})
_MICROSECOND = timedelta(microseconds=1)


class SqlSnapshots(SqlBase):
    """The part of a `Unit` that forgets, keeps and puts back what a service has, or all of them."""

    async def reset(self, service_id: int | None) -> None:
        await self._alone()
        condition, values = where({"service_id = ?": service_id})
        for table in _tables(service_id):
            await self._rows(f"DELETE FROM {table} WHERE {condition}", *values)

    async def save_snapshot(self, name: str, service_id: int | None, now: datetime) -> Snapshot:
        await self._alone()
        await self.delete_snapshot(name)
        condition, values = where({"service_id = ?": service_id})
        counts = {}
        for table in _tables(service_id):
            statement = f"SELECT count(*) FROM {table} WHERE {condition}"
            ((counts[table],),) = await self._rows(statement, *values)
        records = {table: count for table, count in counts.items() if table not in _SUMS}
        ((number,),) = await self._rows(_ADD, name, service_id, micros(now), json.dumps(records))
        # No statement that makes a table takes values.
        condition = "1 = 1" if service_id is None else f"service_id = {service_id}"
        for table in filter(counts.get, counts):
            copy = _copy_of(table, number)
            await self._rows(f"CREATE TABLE {copy} AS SELECT * FROM {table} WHERE {condition}")
        return Snapshot(name, service_id, now, records)

    async def restore_snapshot(self, name: str, now: datetime) -> Snapshot | None:
        await self._alone()
        row = await self._row(f"{_SNAPSHOTS} WHERE name = ?", name)
        if row is None:
            return None
        snapshot = _to_snapshot(row)
        await self.reset(snapshot.service_id)
        by = (now - snapshot.taken_at) // _MICROSECOND
        for table in _tables(snapshot.service_id):
            await self._put_back(table, _copy_of(table, row[0]), by)
        ((due_at,),) = await self._rows("SELECT min(due_at) FROM jobs WHERE lease_until = 0")
        self.added = None if due_at is None else moment(due_at)
        return snapshot

    async def delete_snapshot(self, name: str) -> bool:
        await self._alone()
        statement = "DELETE FROM snapshots WHERE name = ? RETURNING number, service_id"
        found = await self._rows(statement, name)
        for number, service_id in found:
            for table in _tables(service_id):
                await self._rows(f"DROP TABLE IF EXISTS {_copy_of(table, number)}")
        return bool(found)

    async def snapshots(self) -> Sequence[Snapshot]:
        return [_to_snapshot(row) for row in await self._rows(f"{_SNAPSHOTS} ORDER BY number DESC")]

    async def _put_back(self, table: str, copy: str, by: int) -> None:
        """Put the rows of a copy into the table, with every time so many microseconds later."""
        names = await self._columns(copy)
        order = "ORDER BY number" if "number" in names else ""
        names &= await self._columns(table)
        if table == "jobs":
            names -= _NEW_IN_A_JOB
        values = {name: f"{name} + {by}" if _is_time(name) else name for name in names}
        if "number" in names:
            values["number"] += f" + {await self._room(table, copy)}"
        if names:
            chosen = f"SELECT {', '.join(values.values())} FROM {copy} {order}"
            await self._rows(f"INSERT INTO {table} ({', '.join(values)}) {chosen}")

    async def _room(self, table: str, copy: str) -> int:
        """What to add to the numbers of a copy, where SQLite gave one of them again meanwhile."""
        if await self._row(f"SELECT 1 FROM {copy} JOIN {table} USING (number) LIMIT 1") is None:
            return 0
        ((last,),) = await self._rows(f"SELECT max(number) FROM {table}")
        return int(last)

    async def _columns(self, table: str) -> set[str]:
        return {name for (name,) in await self._rows(self.COLUMNS, table)}


def _tables(service_id: int | None) -> Iterable[str]:
    return (*schema.OF_SERVICES, *schema.OF_ALL) if service_id is None else schema.OF_SERVICES


def _copy_of(table: str, number: int) -> str:
    return f"snapshot_{number}_{table}"


def _is_time(column: str) -> bool:
    return column == "at" or column.endswith("_at")


def _to_snapshot(row: Row) -> Snapshot:
    _, name, service_id, taken_at, records = row
    return Snapshot(name, service_id, moment(taken_at), json.loads(records))
