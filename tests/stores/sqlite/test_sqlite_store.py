"""Behaviour of the SQLite store alone: its file outlasts the server, and one server uses it."""

import asyncio
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.control.record_search import CALLBACKS, MESSAGES, TRANSACTIONS, RecordKind
from sandbox_sim.ports import StoreError, Unit
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.transactions import Status
from sandbox_sim.stores.sql import clean_up
from sandbox_sim.stores.sqlite.sqlite_store import APPLICATION_ID, SqliteStore
from sandbox_sim.values.clients import ServiceMode
from tests.sample_records import (
    NOW,
    SERVICE,
    after,
    callback,
    delivery,
    entry,
    job,
    posting,
    transaction,
)
from tests.sqlite_files import connection_of, count, killed, opened, outside, rows
from tests.stores.conftest import cleaned_up
from tests.stores.sqlite.conftest import posted
from tests.stores.writes import WRITES, Write, prepared, state
from tests.turns import SOON_S
from tests.units import unit_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a new file; its folder does not exist yet."""
    return tmp_path / "state" / "sandbox.sqlite3"


def empty(path: Path) -> Path:
    path.parent.mkdir()
    path.touch()
    return path


async def all_but_claims(unit: Unit) -> dict[str, Any]:
    """The state without claims, which end with the server that made them."""
    found = await state(unit)
    del found["next due"]
    return found


async def claimed(store: SqliteStore) -> list[str]:
    return [each.subject for each in await unit_of(store).claim_due(NOW, 10)]


async def payment(number: int, unit: Unit) -> None:
    """Write and read as a payment does until its callback is sent."""
    for mode in ServiceMode:
        found = await unit.transaction(SERVICE, f"T{number}", mode)
        assert found is None
        added = transaction(f"1000000{mode}{number}", transaction_id=f"T{number}", mode=mode)
        await unit.add_transaction(added)
        await unit.add_job(job(added.network_transaction_id))
        for due in await unit.claim_due(NOW, 1):
            found = await unit.transaction_by_network_id(SERVICE, due.subject, mode)
            assert found == added
            await unit.finish(due)
        await unit.save_transaction(added.with_status(Status.SUCCESSFUL, NOW))
        await unit.save_callback(callback(f"C{mode}{number}", mode=mode))
        await unit.callback(SERVICE, f"C{mode}{number}")
    await unit.add_transfer(posting("1"))
    await unit.add_entries([entry(f"R{number}")])


async def test_the_statements_of_a_payment_are_compiled_once(path: Path) -> None:
    """SQLite calls its authorizer for each table and column of a statement that it compiles."""
    compiled: list[object] = []

    def allow(*access: object) -> int:
        compiled.append(access)
        return sqlite3.SQLITE_OK

    async def listen(unit: Unit) -> None:
        connection_of(unit).set_authorizer(allow)

    async with opened(path) as store:
        await store.run(listen)
        await cleaned_up(store)
        await store.run(partial(payment, 1))
        assert compiled
        compiled.clear()

        await store.run(partial(payment, 2))

    assert compiled == []


class TestReopenedFile:
    @pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
    async def test_every_kind_of_write_survives_a_stop_and_a_kill(
        self, path: Path, tmp_path: Path, write: Write
    ) -> None:
        async with opened(path) as store:
            await store.run(prepared)
            await store.run(write)
            before = await store.run(all_but_claims)
            left = killed(path, tmp_path / "after the kill")

        for file in (path, left):
            async with opened(file) as store:
                assert await store.run(all_but_claims) == before

    async def test_jobs_that_were_claimed_and_not_finished_are_claimed_again(
        self, path: Path, tmp_path: Path
    ) -> None:
        """The server that claimed them has ended. A job may run twice, but is never lost."""
        async with opened(path) as store:
            await store.run(prepared)
            first, *_ = await unit_of(store).claim_due(NOW, 10)
            await unit_of(store).finish(first)
            left = killed(path, tmp_path / "after the kill")

        for file in (path, left):
            async with opened(file) as store:
                assert await claimed(store) == ["due too"]


class TestClosedStore:
    async def assert_closed(self, store: SqliteStore, path: Path) -> None:
        async with asyncio.timeout(SOON_S):
            with pytest.raises(StoreError, match=f"{path}: the store is closed"):
                await store.run(state)

    async def test_a_store_refuses_units_until_it_is_open(self, path: Path) -> None:
        store = SqliteStore(path, VirtualClock())
        await self.assert_closed(store, path)
        await store.close()

        async with opened(path):
            with pytest.raises(StoreError):
                await store.open()
            await self.assert_closed(store, path)
        await store.open()
        for _ in range(2):
            await store.close()

        for number in range(3):
            await store.open()
            assert len(await posted(store)) == number
            await unit_of(store).add_transfer(posting("1"))
            for _ in range(2):
                await store.close()

    async def test_a_store_refuses_units_while_and_after_it_closes(self, path: Path) -> None:
        async with opened(path) as store:
            closing = asyncio.create_task(store.close())
            await asyncio.sleep(0)
            await self.assert_closed(store, path)
            await closing
            await self.assert_closed(store, path)


class TestOneServerAtATime:
    @pytest.mark.parametrize("writes", [False, True])
    async def test_a_second_server_is_refused_under_another_name_of_the_file_too(
        self, path: Path, tmp_path: Path, writes: bool
    ) -> None:
        """The first server has only opened the file, or has written too."""
        async with opened(path):
            pass
        alias = tmp_path / "alias"
        alias.symlink_to(path)
        async with opened(path) as store:
            if writes:
                await store.run(prepared)
            for name in (path, alias):
                with pytest.raises(StoreError, match=f"^{name}: another server is using it"):
                    await SqliteStore(name, VirtualClock()).open()
            # Another program cannot read it: a person who wants a copy stops the server first.
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                outside(path, "SELECT * FROM jobs")
            before = await store.run(state)

        async with opened(path) as store:
            assert await store.run(state) == before

    async def test_at_most_one_of_several_starting_servers_gets_the_file(self, path: Path) -> None:
        """On a new file they may block each other; then no store gets it, and each raises."""
        stores = [SqliteStore(path, VirtualClock()) for _ in range(3)]

        outcomes = await asyncio.gather(*(store.open() for store in stores), return_exceptions=True)

        refused = [str(outcome) for outcome in outcomes if outcome is not None]
        assert len(refused) >= 2
        assert all("another server is using it" in each for each in refused)
        for store in stores:
            await store.close()


class TestTheFile:
    @pytest.mark.parametrize(
        ("durability", "synchronous"), [((), 1), (("process",), 1), (("power",), 2)]
    )
    async def test_the_setting_durability_selects_the_synchronous_mode(
        self, path: Path, durability: tuple[Any, ...], synchronous: int
    ) -> None:
        """NORMAL survives a kill; FULL, which waits for the disk, survives a power cut too."""
        store = SqliteStore(path, VirtualClock(), *durability)
        await store.open()
        assert await rows(store, "PRAGMA synchronous") == [(synchronous,)]
        assert await rows(store, "PRAGMA journal_mode") == [("wal",)]
        await store.close()

    async def test_a_closed_store_is_one_file_with_an_application_id(self, path: Path) -> None:
        async with opened(empty(path)) as store:  # an empty file counts as new
            await store.run(prepared)

        assert list(path.parent.iterdir()) == [path]
        assert outside(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
        assert outside(path, "PRAGMA integrity_check") == [("ok",)]


async def test_an_error_of_a_unit_is_raised_unchanged(path: Path) -> None:
    async def waits(unit: Unit) -> None:
        await unit.add_transfer(posting())
        await asyncio.sleep(0)  # a unit may wait only for its own calls

    message = delivery()._replace(body=object())  # type: ignore[arg-type]
    strange = job()._replace(subject=["a list"])  # type: ignore[arg-type]
    async with opened(path) as store:
        await unit_of(store).add_transaction(transaction())
        with pytest.raises(sqlite3.IntegrityError):
            await unit_of(store).add_transaction(transaction())
        with pytest.raises(TypeError):
            await unit_of(store).add_inbox_message("orders", message)
        with pytest.raises((sqlite3.ProgrammingError, sqlite3.InterfaceError)):
            await unit_of(store).add_job(strange)
        with pytest.raises(RuntimeError, match="not its unit"):
            await store.run(waits)
        assert await posted(store) == []


@pytest.mark.parametrize(
    ("kind", "field"),
    [(kind, field) for kind in (CALLBACKS, MESSAGES, TRANSACTIONS) for field in kind.indexed],
    ids=lambda each: each if isinstance(each, str) else each.type.value,
)
async def test_a_search_by_an_id_reads_an_index_and_not_the_whole_table(
    path: Path, kind: RecordKind, field: str
) -> None:
    statements: list[str] = []

    async def listed(unit: Unit) -> None:
        connection_of(unit).set_trace_callback(statements.append)
        await kind.list_page(unit, Listing(only=(field, ("1", "2")), limit=5))
        connection_of(unit).set_trace_callback(None)

    async with opened(path) as store:
        await store.run(listed)
    (statement,) = (each for each in statements if each.startswith("SELECT"))
    plan = str(outside(path, f"EXPLAIN QUERY PLAN {statement}"))

    assert "SCAN" not in plan
    assert f"({field}=?)" in plan


async def test_a_copy_replaces_no_earlier_copy_while_the_clock_is_frozen(path: Path) -> None:
    async with opened(path) as store:
        copies = [await store.back_up()]
        await unit_of(store).add_transaction(transaction())
        copies.append(await store.back_up())

    counted = [outside(copy, "SELECT count(*) FROM transactions") for copy in copies]
    assert counted == [[(0,)], [(1,)]]


@pytest.mark.decision("D40")
async def test_old_transactions_are_deleted_in_steps(
    path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean_up, "_DROPPED_AT_ONCE", 2)
    async with opened(path, clock, keep_transactions=3) as store:
        for number in range(8):
            final = transaction(f"{number:011d}", status=Status.SUCCESSFUL, decided_at=NOW)
            await unit_of(store).add_transaction(final)
        clock.move_to(after(hours=1))

        counts = [await count(store, "transactions") for _ in range(10)]

        assert list(dict.fromkeys(counts)) == [8, 6, 4, 3]


@pytest.mark.decision("D20")
@pytest.mark.parametrize(("minutes", "kept"), [(0, 1), (14.99, 1), (15, 0), (6_000_000, 0)])
async def test_card_pages_are_deleted_when_they_expire_and_other_records_are_kept(
    path: Path, clock: VirtualClock, minutes: float, kept: int
) -> None:
    """The SMS history and the transfers are never deleted."""
    async with opened(path, clock) as store:
        await store.run(prepared)
        clock.move_to(after(minutes=minutes))
        await cleaned_up(store)

        tables = ("checkouts", "messages", "transfers", "jobs")
        assert [await count(store, each) for each in tables] == [kept, 3, 1, 3]
