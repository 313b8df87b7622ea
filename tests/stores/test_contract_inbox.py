"""Inboxes in every store: pages, and limits in number and in bytes."""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from sandbox_sim.ports import Store, Unit
from sandbox_sim.records import inbox
from sandbox_sim.records.inbox import InboxMessage
from sandbox_sim.records.listing import Listing
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from tests.sample_records import NOW, delivery
from tests.units import unit_of

LARGE = "x" * 100_000

ALL = Listing(limit=1000)


async def deliver(store: Store, name: str, *messages: InboxMessage) -> None:
    for message in messages:
        await unit_of(store).add_inbox_message(name, message)


async def ids(store: Store, *names: str, listing: Listing = ALL) -> list[list[str]]:
    found = [await unit_of(store).inbox_messages(name, listing) for name in names]
    return [[message.id for message in messages] for messages in found]


async def test_a_page_begins_after_any_message_and_the_newest_come_first(store: Store) -> None:
    for number in range(4):
        await deliver(store, "orders", delivery(id=f"D{number}"))
        await deliver(store, "refunds", delivery(id=f"other {number}"))

    for after_id, limit, expected in (
        (None, 10, ["D3", "D2", "D1", "D0"]),
        (None, 2, ["D3", "D2"]),
        ("D2", 1, ["D1"]),
        ("D0", 10, []),
        ("D9", 10, []),
    ):
        listing = Listing(None, after_id, limit)
        assert await ids(store, "orders", listing=listing) == [expected], listing


async def test_each_inbox_keeps_its_newest_messages(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "KEPT_INBOX_MESSAGES", 3)
    for number in range(10):
        await deliver(store, "orders", delivery(id=str(number)))
        await deliver(store, f"other {number}", delivery(id="D1"))

    assert await ids(store, "orders", "other 0") == [["9", "8", "7"], ["D1"]]


def large(name: str, body: str = LARGE) -> InboxMessage:
    return delivery(body, id=name)


class TestLimitInBytes:
    """All inboxes together have a limit in bytes: here that of three large deliveries."""

    @pytest.fixture(autouse=True)
    def bound(self, monkeypatch: pytest.MonkeyPatch) -> int:
        bound = 3 * inbox.size_of(large("D"))
        monkeypatch.setattr(inbox, "KEPT_INBOX_BYTES", bound)
        return bound

    async def kept_bytes(self, store: Store, *names: str) -> int:
        found = [await unit_of(store).inbox_messages(name, ALL) for name in names]
        return sum(inbox.size_of(message) for messages in found for message in messages)

    async def test_the_oldest_messages_of_all_inboxes_are_deleted_first(self, store: Store) -> None:
        small = [f"box {number}" for number in range(10)]
        for name in small:
            await deliver(store, name, delivery("small", id="S"))
        await deliver(store, "a", large("D1"))
        await deliver(store, "b", large("D2"))
        await deliver(store, "c", large("D3", LARGE[:-5000]))
        assert await ids(store, "a", "b", "c", "box 0") == [["D1"], ["D2"], ["D3"], []]
        assert (await ids(store, "box 9")) == [["S"]]

        await deliver(store, "c", large("D4"))
        assert await ids(store, "a", "b", "c", *small) == [[], ["D2"], ["D4", "D3"], *[[]] * 10]

    async def test_the_limit_holds_for_many_inboxes(self, store: Store, bound: int) -> None:
        names = [f"box {number}" for number in range(50)]
        for name in names:
            await deliver(store, name, delivery("x" * 10_000, id="D"))

        assert bound - 12_000 < await self.kept_bytes(store, *names) <= bound
        assert await ids(store, "box 0", "box 49") == [[], ["D"]]

    async def test_characters_that_take_four_bytes_count_as_four(
        self, store: Store, bound: int
    ) -> None:
        wide = "🧾" + "x" * (len(LARGE) - 1)

        await deliver(store, "a", large("D1"), large("D2", wide))

        assert inbox.size_of(large("D2", wide)) > 3.9 * len(wide)
        assert await ids(store, "a") == [[]], "the second message alone exceeds the limit"
        assert await self.kept_bytes(store, "a") <= bound

    async def test_cleared_messages_do_not_count_and_restored_ones_do(self, store: Store) -> None:
        await deliver(store, "a", large("D1"))
        for _ in range(3):
            await deliver(store, "b", large("D2"), large("D3"))
            assert await unit_of(store).clear_inbox("b") == 2
        assert await ids(store, "a") == [["D1"]]

        await unit_of(store).save_snapshot("before", None, NOW)
        await unit_of(store).reset(None)
        await deliver(store, "b", large("D4"), large("D5"), large("D6"))
        assert await ids(store, "a", "b") == [[], ["D6", "D5", "D4"]]

        await unit_of(store).restore_snapshot("before", NOW)
        assert await ids(store, "a", "b") == [["D1"], []]
        await deliver(store, "b", large("D7"), large("D8"), large("D9"))
        assert await ids(store, "a", "b") == [[], ["D9", "D8", "D7"]]

    async def test_a_failed_unit_deletes_no_messages(self, store: Store) -> None:
        await deliver(store, "a", large("D1"))
        await deliver(store, "b", large("D2"), large("D3"))

        async def fails(unit: Unit) -> None:
            for name in ("D4", "D5"):
                await unit.add_inbox_message("a", large(name))
            await unit.clear_inbox("b")
            raise LookupError

        with pytest.raises(LookupError):
            await store.run(fails)

        assert await ids(store, "a", "b") == [["D1"], ["D3", "D2"]]
        await deliver(store, "c", large("D6"))
        assert await ids(store, "a", "b", "c") == [[], ["D3", "D2"], ["D6"]]


MANY = 400

_ROWS_READ = (
    "SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0) "
    "FROM pg_stat_xact_user_tables WHERE relname LIKE 'inbox%'"
)


class Counter:
    """Counts work: sizes computed in memory, steps of SQLite, rows that Postgres reads."""

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


@pytest.fixture(params=["room for more", "the oldest is deleted"])
def bound(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the limit of all inboxes together, beside `count` deliveries."""

    def set_for(count: int) -> None:
        size = inbox.size_of(delivery("small", id="D1"))
        kept = size * count if request.param == "the oldest is deleted" else size * MANY * 2
        monkeypatch.setattr(inbox, "KEPT_INBOX_BYTES", kept)

    return set_for


async def test_a_delivery_takes_the_same_work_beside_one_inbox_and_beside_many(
    counter: Counter, store: Store, bound: Callable[[int], None]
) -> None:
    """The store keeps the sum of the bytes, and does not add them up for each delivery."""

    async def fill(unit: Unit, first: int, last: int) -> None:
        for number in range(first, last):
            await unit.add_inbox_message(f"box {number}", delivery("small", id=f"D{number}"))

    bound(MANY * 2)
    await store.run(lambda unit: fill(unit, 0, 10))
    bound(10)
    beside_few = await counter.work_of(store, "new")

    bound(MANY * 2)
    await store.run(lambda unit: fill(unit, 10, MANY))
    bound(MANY)
    beside_many = await counter.work_of(store, "newer")

    assert beside_few > 0
    assert beside_many < 2 * beside_few + 20
