"""A delivery takes the same work beside one inbox and beside thousands: bytes are kept, not summed.

Work is what each store can count: sizes that are taken in memory, steps of SQLite, rows that
Postgres reads.
"""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from sandbox_sim.ports import Store, Unit
from sandbox_sim.records import inbox
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from tests.sample_records import delivery

MANY = 400

_ROWS_READ = (
    "SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0) "
    "FROM pg_stat_xact_user_tables WHERE relname LIKE 'inbox%'"
)


class Counter:
    """Counts the work of units."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._steps = 0
        connect, size_of = sqlite3.connect, inbox.size_of

        def step() -> int:
            self._steps += 1
            return 0

        def connected(*args: Any, **options: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*args, **options)
            connection.set_progress_handler(step, 1)
            return connection

        def sized(message: inbox.InboxMessage) -> int:
            self._steps += 1
            return size_of(message)

        monkeypatch.setattr(sqlite3, "connect", connected)
        monkeypatch.setattr(inbox, "size_of", sized)

    async def work_of(self, store: Store, name: str) -> int:
        """The work of a delivery to this inbox."""

        async def deliver(unit: Unit) -> int:
            before = await self._so_far(store, unit)
            await unit.add_inbox_message(name, delivery("small", id=f"{name}-{self._steps}"))
            return await self._so_far(store, unit) - before

        if not isinstance(store, MemoryStore | SqliteStore):
            await store.run(_analyze)  # as autovacuum does, after some time
        return await store.run(deliver)

    async def _so_far(self, store: Store, unit: Any) -> int:
        if isinstance(store, MemoryStore | SqliteStore):
            return self._steps
        ((rows,),) = await unit._fetch(_ROWS_READ)
        return int(rows)


async def _analyze(unit: Any) -> None:
    await unit._fetch("ANALYZE")


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return Counter(monkeypatch)


async def fill(store: Store, first: int, last: int) -> None:
    async def deliver(unit: Unit) -> None:
        for number in range(first, last):
            await unit.add_inbox_message(f"box {number}", delivery("small", id=f"D{number}"))

    await store.run(deliver)


@pytest.fixture(params=["room for more", "the oldest goes"])
def bound(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the limit of all inboxes together, for when there are so many deliveries."""

    def set_for(count: int) -> None:
        size = inbox.size_of(delivery("small", id="D1"))
        kept = size * count if request.param == "the oldest goes" else size * MANY * 2
        monkeypatch.setattr(inbox, "KEPT_INBOX_BYTES", kept)

    return set_for


async def test_of_a_delivery(counter: Counter, store: Store, bound: Callable[[int], None]) -> None:
    bound(MANY * 2)
    await fill(store, 0, 10)
    bound(10)
    beside_few = await counter.work_of(store, "new")

    bound(MANY * 2)
    await fill(store, 10, MANY)
    bound(MANY)
    beside_many = await counter.work_of(store, "newer")

    assert beside_few > 0
    assert beside_many < 2 * beside_few + 20
