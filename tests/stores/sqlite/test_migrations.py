"""A file of an earlier version is migrated completely or not at all."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from sandbox_sim.records.ledger import Balance, LedgerQuery, shown
from sandbox_sim.stores.sql import schema
from sandbox_sim.values.clients import ServiceMode
from tests.live_records import LIVE
from tests.sample_records import NOW, account_of, posting, violations
from tests.sqlite_files import contents, opened, outside
from tests.stores.sqlite.conftest import refusal
from tests.stores.two_ledgers import T0, VERSION, assert_one_ledger, two_ledgers
from tests.stores.versions import know_versions
from tests.stores.writes import prepared, state
from tests.units import unit_of

CURRENT = schema.MIGRATIONS

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
LATER = (*CURRENT, ADD_A_COLUMN, ADD_A_TABLE)


def version(path: Path) -> int:
    ((number,),) = outside(path, "PRAGMA user_version")
    return int(number)


def tables(path: Path) -> list[tuple[str, ...]]:
    """Every table and index with the SQL that created it."""
    return outside(path, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")


def columns_and_indexes(path: Path) -> dict[str, object]:
    """The columns of each table in their order, and its indexes."""
    found: dict[str, object] = {}
    for kind, name, table, sql in tables(path):
        found[f"columns of {table}"] = outside(path, f"PRAGMA table_info({table})")
        if kind != "table":
            found[f"{kind} {name}"] = sql and " ".join(sql.split())
    return found


async def make(path: Path) -> None:
    async with opened(path):
        pass


async def test_a_migration_keeps_the_records_of_a_file_and_of_its_snapshots(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restored row has the default value in a new column, as existing rows do."""
    async with opened(path) as store:
        await store.run(prepared)
        await unit_of(store).save_snapshot("before", None, NOW)
        before = await store.run(state)
    know_versions(monkeypatch, (*CURRENT, ADD_A_COLUMN))

    for restores in (False, True):
        async with opened(path) as store:
            if restores:
                await unit_of(store).reset(None)
                await unit_of(store).restore_snapshot("before", NOW)
            assert await store.run(state) == before

        assert version(path) == len(CURRENT) + 1
        assert outside(path, "SELECT note FROM transactions") == [("none",)]


async def test_a_file_of_the_current_version_is_not_changed(path: Path) -> None:
    async with opened(path) as store:
        await store.run(prepared)
    before = contents(path.parent)

    await make(path)

    assert contents(path.parent) == before


@pytest.mark.parametrize("migrations", [CURRENT, LATER], ids=["current", "later"])
async def test_every_earlier_version_leads_to_the_schema_of_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, migrations: tuple[str, ...]
) -> None:
    await make(tmp_path / "current")
    know_versions(monkeypatch, migrations)
    await make(tmp_path / "new")
    if migrations is CURRENT:  # the tables of a new file are those that the migrations make
        current, new = (columns_and_indexes(tmp_path / each) for each in ("current", "new"))
        assert current == new
    for earlier in range(1, len(migrations) + 1):
        path = tmp_path / f"from {earlier}"
        know_versions(monkeypatch, migrations[:earlier])
        async with opened(path) as store:
            if earlier >= len(CURRENT):  # older tables lack columns of the current records
                await store.run(prepared)
        know_versions(monkeypatch, migrations)

        await make(path)

        assert version(path) == len(migrations)
        assert tables(path) == tables(tmp_path / "new")
        assert outside(path, "PRAGMA integrity_check") == [("ok",)]


async def test_a_migration_counts_the_bytes_of_earlier_deliveries(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know_versions(monkeypatch, CURRENT[:1])
    await make(path)
    document = '["POST", [], "{}", "valid"]'
    row = f"('orders', 'D1', 0, '{document}')"
    outside(path, f"INSERT INTO inbox (name, id, at, document) VALUES {row}")  # noqa: S608 -- ours
    know_versions(monkeypatch, CURRENT)

    await make(path)

    assert outside(path, "SELECT size FROM inbox") == [(len(document),)]
    assert outside(path, "SELECT kept FROM inbox_bytes") == [(len(document),)]


async def file_with_two_ledgers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    know_versions(monkeypatch, CURRENT[:VERSION])
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
    know_versions(monkeypatch, CURRENT)


@pytest.mark.decision("D39")
async def test_a_file_of_version_12_gets_one_ledger(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await file_with_two_ledgers(path, monkeypatch)

    async with opened(path) as store:
        await assert_one_ledger(store)


@pytest.mark.decision("D22")
async def test_a_snapshot_of_a_file_of_version_12_can_be_restored(
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


class TestFailedMigration:
    @pytest.mark.parametrize(
        "migrations",
        [(FAILS_HALF_WAY,), (ADD_A_TABLE, FAILS_HALF_WAY), (FAILS_HALF_WAY, ADD_A_TABLE)],
        ids=["the only one", "the second", "the first"],
    )
    async def test_the_file_is_not_changed_and_the_error_says_so(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, migrations: tuple[str, ...]
    ) -> None:
        async with opened(path) as store:
            await store.run(prepared)
            before = await store.run(state)
        file = contents(path.parent)
        know_versions(monkeypatch, (*CURRENT, *migrations))

        assert await refusal(path) == (
            f"{path}: it could not be brought from version {len(CURRENT)} to "
            f"{len(CURRENT) + len(migrations)}, and is as it was: duplicate column name: note"
        )
        assert contents(path.parent) == file
        know_versions(monkeypatch, CURRENT)
        async with opened(path) as store:
            assert await store.run(state) == before

    async def test_a_new_file_stays_empty(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        know_versions(monkeypatch, (*CURRENT, FAILS_HALF_WAY))
        assert "as it was" in await refusal(path)
        assert (version(path), tables(path)) == (0, [])

        know_versions(monkeypatch, CURRENT)
        await make(path)
        assert version(path) == len(CURRENT)


async def test_a_file_of_a_later_version_is_refused_and_not_changed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know_versions(monkeypatch, LATER)
    await make(path)
    before = contents(path.parent)
    know_versions(monkeypatch, CURRENT)

    assert await refusal(path) == (
        f"{path}: it has version {len(LATER)} and this sandbox_sim knows up to {len(CURRENT)}; "
        "install a newer sandbox_sim or choose another file"
    )
    assert contents(path.parent) == before


async def test_a_copy_counts_as_restored_once_for_a_later_version_too(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []
    async with opened(path) as store:
        answers.append(await unit_of(store).restored())
        copy = await store.back_up()
    know_versions(monkeypatch, LATER)

    for each in (path, path, copy, copy):
        async with opened(each) as store:
            answers.append(await unit_of(store).restored())

    assert answers == [False, False, False, True, False]
