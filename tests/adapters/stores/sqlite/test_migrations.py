"""A file of an earlier version is migrated completely or not at all."""

from pathlib import Path

import pytest

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.adapters.stores.sql import schema
from sandbox_sim.adapters.stores.sqlite.sqlite_store import SqliteStore
from sandbox_sim.gateway.ports import StoreError
from tests.adapters.stores.writes import prepared, state
from tests.records import NOW
from tests.sqlite_files import contents, opened, outside

TODAY = schema.MIGRATIONS
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
# The tables of production mode, which migration 4 and later ones add.
LIVE_TABLES = (
    *("live_transactions", "attempts", "accounts", "holds", "entries", "legs"),
    *("raw_notifications", "exchanges", "live_messages", "live_journals", "message_parts"),
)
# Two more migrations, so that the tests below apply several steps.
ONE_DAY = (*TODAY, ADD_A_COLUMN, ADD_A_TABLE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite3"


def know(monkeypatch: pytest.MonkeyPatch, *migrations: str) -> None:
    """Make these the migrations of sandbox_sim."""
    monkeypatch.setattr(schema, "MIGRATIONS", migrations)


def version(path: Path) -> int:
    ((number,),) = outside(path, "PRAGMA user_version")
    return int(number)


def tables(path: Path) -> list[tuple[str, ...]]:
    """Every table and index with the SQL that created it."""
    return outside(path, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")


async def make(path: Path) -> None:
    async with opened(path):
        pass


async def test_a_new_file_has_the_newest_version(path: Path) -> None:
    await make(path)

    assert version(path) == len(TODAY)


async def test_what_is_in_a_file_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(path) as store:
        await store.run(prepared)
        before = await store.run(state)
    know(monkeypatch, *TODAY, ADD_A_COLUMN)

    async with opened(path) as store:
        assert await store.run(state) == before

    assert version(path) == len(TODAY) + 1
    assert outside(path, "SELECT note FROM transactions") == [("none",)]


async def test_a_snapshot_of_an_earlier_version_can_be_restored(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restored row has the default value in a new column, as existing rows do."""
    async with opened(path) as store:
        await store.run(prepared)
        await store.run(lambda unit: unit.save_snapshot("before", None, NOW))
        before = await store.run(state)
    know(monkeypatch, *TODAY, ADD_A_COLUMN)

    async with opened(path) as store:
        await store.run(lambda unit: unit.reset(None))
        await store.run(lambda unit: unit.restore_snapshot("before", NOW))
        assert await store.run(state) == before

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
    know(monkeypatch, *migrations)
    await make(tmp_path / "new")
    for earlier in range(1, len(migrations) + 1):
        path = tmp_path / f"from {earlier}"
        know(monkeypatch, *migrations[:earlier])
        async with opened(path) as store:
            if earlier >= len(TODAY):  # older tables have no columns for the records of today
                await store.run(prepared)
        know(monkeypatch, *migrations)

        await make(path)

        assert version(path) == len(migrations)
        assert tables(path) == tables(tmp_path / "new")
        assert outside(path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.decision("D38")
async def test_a_file_without_addresses_kept_apart_is_read_as_before(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 1 has no columns for them; the addresses that it has are still called."""
    async with opened(path) as store:
        await store.run(prepared)
        before = await store.run(state)
    outside(
        path,
        *(
            f"ALTER TABLE transactions DROP COLUMN {each}_target"
            for each in ("callback", "landing")
        ),
        "ALTER TABLE callbacks DROP COLUMN target",
        "DROP INDEX inbox_sizes",
        "ALTER TABLE inbox DROP COLUMN size",
        "ALTER TABLE callbacks DROP COLUMN mode",
        "DROP INDEX requests_by_service",
        "ALTER TABLE requests DROP COLUMN mode",
        "CREATE INDEX requests_by_service ON requests (service_id, number)",
        *(f"DROP TABLE {each}" for each in LIVE_TABLES),
        "PRAGMA user_version = 1",
    )

    async with opened(path) as store:
        assert await store.run(state) == before

    assert version(path) == len(TODAY)


async def test_deliveries_of_before_the_bound_in_bytes_count(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, *TODAY[:1])
    await make(path)
    document = '["POST", [], "{}", "valid"]'
    outside(
        path,
        "INSERT INTO inbox (name, id, at, document) "
        """VALUES ('orders', 'D1', 0, '["POST", [], "{}", "valid"]')""",
    )
    know(monkeypatch, *TODAY)

    await make(path)

    assert outside(path, "SELECT size FROM inbox") == [(len(document),)]


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
        know(monkeypatch, *TODAY, *migrations)

        with pytest.raises(StoreError) as told:
            await SqliteStore(path, VirtualClock()).open()

        assert str(told.value) == (
            f"{path}: it could not be brought from version {len(TODAY)} to "
            f"{len(TODAY) + len(migrations)}, and is as it was: duplicate column name: note"
        )
        assert contents(path.parent) == file
        know(monkeypatch, *TODAY)
        async with opened(path) as store:
            assert await store.run(state) == before

    async def test_of_a_new_file_nothing_is_begun(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        know(monkeypatch, *TODAY, FAILS_HALF_WAY)
        with pytest.raises(StoreError, match="as it was"):
            await SqliteStore(path, VirtualClock()).open()
        assert (version(path), tables(path)) == (0, [])

        know(monkeypatch, *TODAY)
        await make(path)
        assert version(path) == len(TODAY)


async def test_back_to_an_earlier_sandbox_sim_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, *ONE_DAY)
    await make(path)
    before = contents(path.parent)
    know(monkeypatch, *TODAY)

    with pytest.raises(StoreError) as told:
        await SqliteStore(path, VirtualClock()).open()

    assert str(told.value) == (
        f"{path}: it has version {len(ONE_DAY)} and this sandbox_sim knows up to {len(TODAY)}; "
        "install a newer sandbox_sim or choose another file"
    )
    assert contents(path.parent) == before
