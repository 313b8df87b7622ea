"""Builders of SQL statements from our own names, and the base class that runs them; `?` is a
parameter.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sandbox_sim.adapters.stores.sql.rows import Row
from sandbox_sim.domain.control.listing import Listing


def insert(table: str, columns: Sequence[str]) -> str:
    """A statement that adds one row."""
    marks = ", ".join("?" for _ in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"


def upsert(table: str, key: str, columns: Sequence[str]) -> str:
    """A statement that adds one row, or replaces the row with this key."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return f"{insert(table, columns)} ON CONFLICT ({key}) DO UPDATE SET {changes}"


def select(columns: Sequence[str], table: str, condition: str) -> str:
    """A statement that reads the rows that meet the condition; clauses may follow it."""
    return f"SELECT {', '.join(columns)} FROM {table} WHERE {condition}"


def where(conditions: Mapping[str, object]) -> tuple[str, tuple[object, ...]]:
    """One condition from those whose value is not None, and the values."""
    given = {text: value for text, value in conditions.items() if value is not None}
    return " AND ".join(given) or "1 = 1", tuple(given.values())


class Beside(NamedTuple):
    """A table of the other mode, whose records are shown in one list with those of a table.

    began: the column with the time by which the lists are merged.
    comparison: `<` where the records of the table come before others of the same time, else `<=`.
    """

    table: str
    began: str
    comparison: str


class SqlBase(ABC):
    """Runs statements; the two databases implement it.

    earliest_added: the earliest due time of the jobs that this unit added.
    """

    # Selects the column names of a table; no rows where there is no such table.
    COLUMN_NAMES: str
    earliest_added: datetime | None

    @abstractmethod
    async def _fetch(self, statement: str, *values: object) -> Sequence[Row]:
        """Run a statement and return its rows."""

    @abstractmethod
    async def _execute_many(self, statement: str, values: Iterable[Row]) -> None:
        """Run a statement once for each row of values."""

    @abstractmethod
    async def _lock(self, *key: object) -> None:
        """Wait until no other unit holds the lock of this key; hold it until the unit ends."""

    @abstractmethod
    async def _lock_all(self) -> None:
        """Wait until no other unit runs, and keep all others waiting until this one ends."""

    async def _fetch_one(self, statement: str, *values: object) -> Row | None:
        found = await self._fetch(statement, *values)
        return found[0] if found else None

    async def _listed(
        self,
        table: str,
        columns: Sequence[str],
        id_column: str,
        listing: Listing,
        condition: str = "1 = 1",
        *values: object,
        beside: Beside | None = None,
    ) -> Sequence[Row]:
        """One page of the rows that meet a condition, newest first; `id_column` names records.

        beside: `listing.after` may also name a record of this table; then the page has what began
        before that one.
        """
        bound = f"(SELECT number FROM {table} WHERE {id_column} = ?)"
        bounds = [] if listing.after is None else [listing.after]
        if beside is not None:
            bounds *= 2
            bound = (
                f"COALESCE({bound}, 1 + (SELECT number FROM {table} "
                f"WHERE {beside.began} {beside.comparison} "
                f"(SELECT {beside.began} FROM {beside.table} WHERE {id_column} = ?) "
                "ORDER BY number DESC LIMIT 1))"
            )
        if listing.after is not None:
            condition, values = f"{condition} AND number < {bound}", (*values, *bounds)
        page, service = where({"service_id = ?": listing.service_id})
        clauses = f"{condition} AND {page} ORDER BY number DESC LIMIT ?"
        statement = select(columns, table, clauses)
        return await self._fetch(statement, *values, *service, listing.limit)
