"""Statements put together from names of our own, and how they are run. A `?` stands for a value."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sandbox_sim.adapters.stores.sql.rows import Row
from sandbox_sim.domain.control.listing import Listing


def insert(table: str, columns: Sequence[str]) -> str:
    """Add one row."""
    marks = ", ".join("?" for _ in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"


def upsert(table: str, key: str, columns: Sequence[str]) -> str:
    """Add one row, or replace the one of this key."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return f"{insert(table, columns)} ON CONFLICT ({key}) DO UPDATE SET {changes}"


def select(columns: Sequence[str], table: str, condition: str) -> str:
    """Read the rows for which the condition holds, and what may follow it."""
    return f"SELECT {', '.join(columns)} FROM {table} WHERE {condition}"


def where(asked: Mapping[str, object]) -> tuple[str, tuple[object, ...]]:
    """The conditions that have a value, as one condition and its values; None asks for nothing."""
    chosen = {text: value for text, value in asked.items() if value is not None}
    return " AND ".join(chosen) or "1 = 1", tuple(chosen.values())


class SqlBase(ABC):
    """How statements are run; what the two databases differ in.

    added: the earliest due time of a job that was added.
    """

    # Tells the names of a table's columns; none where there is no such table.
    COLUMNS: str
    added: datetime | None

    @abstractmethod
    async def _rows(self, statement: str, *values: object) -> Sequence[Row]:
        """Run a statement; the rows that it returns, if it does."""

    @abstractmethod
    async def _each(self, statement: str, values: Iterable[Row]) -> None:
        """Run a statement for each row of values."""

    @abstractmethod
    async def _lock(self, *key: object) -> None:
        """Wait until no other unit works on this key."""

    @abstractmethod
    async def _alone(self) -> None:
        """Wait until no other unit works on anything, and let none begin before this one ends."""

    async def _row(self, statement: str, *values: object) -> Row | None:
        found = await self._rows(statement, *values)
        return found[0] if found else None

    async def _listed(
        self,
        table: str,
        columns: Sequence[str],
        name: str,
        listing: Listing,
        condition: str = "1 = 1",
        *values: object,
    ) -> Sequence[Row]:
        """A stretch of what meets a condition, newest first, by the column that names records."""
        stretch, bounds = where(
            {
                "service_id = ?": listing.service_id,
                f"number < (SELECT number FROM {table} WHERE {name} = ?)": listing.after,
            }
        )
        conditions = f"{condition} AND {stretch} ORDER BY number DESC LIMIT ?"
        statement = select(columns, table, conditions)
        return await self._rows(statement, *values, *bounds, listing.limit)
