"""A file of an earlier version is migrated completely or not at all."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import StoreError
from sandbox_sim.records.ledger import Balance, LedgerQuery, shown
from sandbox_sim.stores.sql import schema
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from sandbox_sim.values.clients import ServiceMode
from tests.live_records import LIVE
from tests.sample_records import NOW, account_of, posting, violations
from tests.sqlite_files import contents, opened, outside
from tests.stores.two_ledgers import T0, VERSION, assert_one_ledger, two_ledgers
from tests.stores.versions import know_versions
from tests.stores.writes import prepared, state
from tests.units import unit_of

TODAY = schema.MIGRATIONS

SANDBOX = ServiceMode.SANDBOX

ADD_A_COLUMN = "ALTER TABLE transactions ADD COLUMN note TEXT NOT NULL DEFAULT 'none';"

ADD_A_TABLE = """
CREATE TABLE overrides (number {serial}, name TEXT NOT NULL);
CREATE INDEX overrides_by_name ON overrides (name);
INSERT INTO overrides (name) SELECT subject FROM jobs;
"""

FAILS_HALF_WAY = """
ALTER TABLE transactions ADD COLUMN note TEXT NOT NULL DEFAULT 'none';
DELETE FROM jobs;
ALTER TABLE transactions ADD COLUMN note TEXT;
"""

# Two more migrations, so that the tests below apply several steps.
ONE_DAY = (*TODAY, ADD_A_COLUMN, ADD_A_TABLE)


def version(path: Path) -> int:
    ((number,),) = outside(path, "PRAGMA user_version")
    return int(number)


def tables(path: Path) -> list[tuple[str, ...]]:
    """Every table and index with the SQL that created it."""
    return outside(path, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")


def columns_and_indexes(path: Path) -> dict[str, object]:
    """The columns of each table in their order, and its indexes, whatever made them."""
    found: dict[str, object] = {}
    for kind, name, table, sql in tables(path):
        found[f"columns of {table}"] = outside(path, f"PRAGMA table_info({table})")
        if kind != "table":
            found[f"{kind} {name}"] = sql and " ".join(sql.split())
    return found


async def make(path: Path) -> None:
    async with opened(path):
        pass


async def test_what_is_in_a_file_and_in_its_snapshots_is_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restored row has the default value in a new column, as existing rows do."""
    async with opened(path) as store:
        await store.run(prepared)
        await unit_of(store).save_snapshot("before", None, NOW)
        before = await store.run(state)
    know_versions(monkeypatch, (*TODAY, ADD_A_COLUMN))

    for restores in (False, True):
        async with opened(path) as store:
            if restores:
                await unit_of(store).reset(None)
                await unit_of(store).restore_snapshot("before", NOW)
            assert await store.run(state) == before

        assert version(path) == len(TODAY) + 1
        assert outside(path, "SELECT note FROM transactions") == [("none",)]


async def test_one_that_is_up_to_date_is_not_touched(path: Path) -> None:
    async with opened(path) as store:
        await store.run(prepared)
    before = contents(path.parent)

    await make(path)

    assert contents(path.parent) == before


@pytest.mark.parametrize("migrations", [TODAY, ONE_DAY], ids=["today", "one day"])
async def test_every_earlier_version_leads_to_the_schema_of_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, migrations: tuple[str, ...]
) -> None:
    await make(tmp_path / "today")
    know_versions(monkeypatch, migrations)
    await make(tmp_path / "new")
    if migrations is TODAY:  # the tables of a new file are those that the migrations make
        ours, made = (columns_and_indexes(tmp_path / each) for each in ("today", "new"))
        assert ours == made
    for earlier in range(1, len(migrations) + 1):
        path = tmp_path / f"from {earlier}"
        know_versions(monkeypatch, migrations[:earlier])
        async with opened(path) as store:
            if earlier >= len(TODAY):  # older tables have no columns for the records of today
                await store.run(prepared)
        know_versions(monkeypatch, migrations)

        await make(path)

        assert version(path) == len(migrations)
        assert tables(path) == tables(tmp_path / "new")
        assert outside(path, "PRAGMA integrity_check") == [("ok",)]


async def test_deliveries_of_before_the_bound_in_bytes_count(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know_versions(monkeypatch, TODAY[:1])
    await make(path)
    document = '["POST", [], "{}", "valid"]'
    outside(
        path,
        "INSERT INTO inbox (name, id, at, document) "
        """VALUES ('orders', 'D1', 0, '["POST", [], "{}", "valid"]')""",
    )
    know_versions(monkeypatch, TODAY)

    await make(path)

    assert outside(path, "SELECT size FROM inbox") == [(len(document),)]
    assert outside(path, "SELECT kept FROM inbox_bytes") == [(len(document),)]


async def file_with_two_ledgers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    know_versions(monkeypatch, TODAY[:VERSION])
    await make(path)
    with closing(sqlite3.connect(path)) as file, file:
        for table, row in two_ledgers():
            marks = ", ".join("?" for _ in row)
            file.execute(f"INSERT INTO {table} VALUES ({marks})", row)  # noqa: S608 -- our own names
        records = '{"postings": 3}'
        file.execute("INSERT INTO snapshots VALUES (1, 'before', 55, ?, ?)", (T0, records))
        for table in ("postings", "balances"):
            copied = f"SELECT * FROM {table} WHERE service_id = 55"  # noqa: S608 -- our own names
            file.execute(f"CREATE TABLE snapshot_1_{table} AS {copied}")
    know_versions(monkeypatch, TODAY)


@pytest.mark.decision("D39")
async def test_two_ledgers_become_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await file_with_two_ledgers(path, monkeypatch)

    async with opened(path) as store:
        await assert_one_ledger(store)


@pytest.mark.decision("D22")
async def test_a_snapshot_of_the_ledger_of_before_can_be_restored(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await file_with_two_ledgers(path, monkeypatch)
    later = NOW + timedelta(minutes=1)

    async with opened(path) as store:
        await unit_of(store).add_transfer(posting("7", mode=LIVE))
        await unit_of(store).add_transfer(posting("7"))
        await unit_of(store).restore_snapshot("before", later)
        units = await unit_of(store).balance(account_of(55))
        found = await unit_of(store).ledger_page(LedgerQuery(55, mode=SANDBOX))
        assert await store.run(violations) == ()
        await unit_of(store).delete_snapshot("before")

    assert units == Balance(Decimal(500), Decimal(0), later + timedelta(microseconds=3))
    assert [shown(each.transfer)["amount"] for each in found] == ["2", "-2", "500"]
    assert outside(path, "SELECT name FROM sqlite_schema WHERE name LIKE 'snapshot_1%'") == []


class TestOneThatFails:
    @pytest.mark.parametrize(
        "migrations",
        [(FAILS_HALF_WAY,), (ADD_A_TABLE, FAILS_HALF_WAY), (FAILS_HALF_WAY, ADD_A_TABLE)],
        ids=["the only one", "the second", "the first"],
    )
    async def test_the_file_is_left_as_it_was_and_the_sentence_says_so(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, migrations: tuple[str, ...]
    ) -> None:
        async with opened(path) as store:
            await store.run(prepared)
            before = await store.run(state)
        file = contents(path.parent)
        know_versions(monkeypatch, (*TODAY, *migrations))

        with pytest.raises(StoreError) as told:
            await SqliteStore(path, VirtualClock()).open()

        assert str(told.value) == (
            f"{path}: it could not be brought from version {len(TODAY)} to "
            f"{len(TODAY) + len(migrations)}, and is as it was: duplicate column name: note"
        )
        assert contents(path.parent) == file
        know_versions(monkeypatch, TODAY)
        async with opened(path) as store:
            assert await store.run(state) == before

    async def test_of_a_new_file_nothing_is_begun(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        know_versions(monkeypatch, (*TODAY, FAILS_HALF_WAY))
        with pytest.raises(StoreError, match="as it was"):
            await SqliteStore(path, VirtualClock()).open()
        assert (version(path), tables(path)) == (0, [])

        know_versions(monkeypatch, TODAY)
        await make(path)
        assert version(path) == len(TODAY)


async def test_back_to_an_earlier_sandbox_sim_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know_versions(monkeypatch, ONE_DAY)
    await make(path)
    before = contents(path.parent)
    know_versions(monkeypatch, TODAY)

    with pytest.raises(StoreError) as told:
        await SqliteStore(path, VirtualClock()).open()

    assert str(told.value) == (
        f"{path}: it has version {len(ONE_DAY)} and this sandbox_sim knows up to {len(TODAY)}; "
        "install a newer sandbox_sim or choose another file"
    )
    assert contents(path.parent) == before


async def test_a_copy_is_restored_also_by_a_later_version_and_an_update_restores_nothing(
    in_memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, answers = in_memory / "state.sqlite3", []
    async with opened(file) as store:
        answers.append(await unit_of(store).restored())
        copy = await store.back_up()
    know_versions(monkeypatch, ONE_DAY)

    for each in (file, file, copy, copy):
        async with opened(each) as store:
            answers.append(await unit_of(store).restored())

    assert answers == [False, False, False, True, False]
