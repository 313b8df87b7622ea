"""Another program changes the files of a running server: from then on the store refuses units."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from sandbox_sim.ports import StoreError, Unit
from sandbox_sim.stores.sqlite import sqlite_store
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from tests.sample_records import posting
from tests.sqlite_files import contents, killed, opened, outside, rows
from tests.stores.sqlite.conftest import posted, refusal
from tests.units import unit_of

TWENTY: Final = [f"before {number}" for number in range(20)]


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def removed(path: Path) -> None:
    log_of(path).unlink()


def renamed(path: Path) -> None:
    log_of(path).rename(path.with_name("elsewhere"))


def replaced(path: Path) -> None:
    empty = path.with_name("empty")
    empty.touch()
    empty.replace(log_of(path))


def emptied(path: Path) -> None:
    os.truncate(log_of(path), 0)


def cut_in_half(path: Path) -> None:
    os.truncate(log_of(path), log_of(path).stat().st_size // 2)


def cut_by_a_byte(path: Path) -> None:
    os.truncate(log_of(path), log_of(path).stat().st_size - 1)


GONE = [removed, renamed, replaced]

Damage = Callable[[Path], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "state.sqlite3"


async def post(store: SqliteStore, subject: str) -> None:
    await unit_of(store).add_transfer(posting("1", subject=subject))


async def twenty(store: SqliteStore) -> None:
    """Post twenty times. All postings are acknowledged, and only the log contains them so far."""
    for subject in TWENTY:
        await post(store, subject)


async def posted_in(path: Path) -> list[str]:
    """The postings that a server finds when it starts on this file. The file must be sound."""
    async with opened(path) as store:
        found = await posted(store)
        assert await rows(store, "PRAGMA integrity_check") == [("ok",)]
        await post(store, "after")
    return found


class TestDamagedLog:
    async def assert_refuses_units(self, store: SqliteStore, path: Path, says: str) -> None:
        """The store refuses writes and reads, at once and for good."""
        for _ in range(3):
            with pytest.raises(StoreError, match=f"{path}: its log, the file that ends in -wal"):
                await post(store, "lost")
            with pytest.raises(StoreError, match=f"while the server ran.*{says}"):
                await posted(store)

    @pytest.mark.parametrize("damage", GONE)
    async def test_a_stop_saves_a_log_that_lost_its_name(self, path: Path, damage: Damage) -> None:
        async with opened(path) as store:
            await twenty(store)
            damage(path)
            await self.assert_refuses_units(
                store, path, "stop the server with SIGTERM, which saves"
            )

        assert await posted_in(path) == TWENTY

    @pytest.mark.parametrize("damage", [emptied, cut_in_half, cut_by_a_byte])
    async def test_a_truncated_log_is_not_changed(self, path: Path, damage: Damage) -> None:
        """SQLite would copy pages that are lost; the next start reads those that are there."""
        async with opened(path) as store:
            await twenty(store)
            damage(path)
            await self.assert_refuses_units(store, path, "part of what was answered may be lost")
            left = contents(path.parent)

        assert contents(path.parent) == left
        found = await posted_in(path)
        assert found == TWENTY[: len(found)]

    @pytest.mark.parametrize("damage", [*GONE, emptied, cut_in_half])
    async def test_a_unit_whose_log_is_damaged_before_its_commit_fails(
        self, path: Path, damage: Damage
    ) -> None:
        """The commit writes after the end that the log had, with zeros where it was cut."""

        async def work(unit: Unit) -> None:
            await unit.add_transfer(posting("1", subject="meanwhile"))
            damage(path)

        async with opened(path) as store:
            await twenty(store)
            with pytest.raises(StoreError, match="its log"):
                await store.run(work)


def delete(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("size", [0, 1, 4096])
async def test_a_truncated_database_is_not_changed(path: Path, size: int) -> None:
    """The log stays whole beside it. SQLite would copy the log into the rest and delete it."""
    async with opened(path):
        pass
    async with opened(path) as store:
        await twenty(store)
        os.truncate(path, size)
        with pytest.raises(
            StoreError, match=f"{path}: it was truncated while the server ran; stop"
        ):
            await post(store, "lost")
        left = contents(path.parent)

    assert contents(path.parent) == left
    assert len(log_of(path).read_bytes()) > 0


async def test_a_store_whose_file_was_deleted_refuses_units(path: Path) -> None:
    """SQLite alone would write to the deleted file, which disappears when the server ends."""
    async with opened(path) as store:
        delete(path)

        for _ in range(2):
            with pytest.raises(
                StoreError, match=f"{path}: it was deleted or replaced while the server ran; start"
            ):
                await post(store, "lost")

    assert await posted_in(path) == []


async def test_a_restored_backup_is_not_mixed_with_the_log_of_the_replaced_file(path: Path) -> None:
    async with opened(path) as store:
        await post(store, "in the backup")
    shutil.copy(path, path.with_name("backup"))
    async with opened(path) as store:
        await twenty(store)
        path.with_name("backup").replace(path)
        with pytest.raises(
            StoreError, match="it was deleted or replaced while the server ran; start"
        ):
            await post(store, "lost")

    assert await posted_in(path) == ["in the backup"]


async def test_a_store_opened_by_a_symlink_watches_the_same_log(path: Path, tmp_path: Path) -> None:
    async with opened(path):
        pass
    alias = tmp_path / "alias"
    alias.symlink_to(path)
    async with opened(alias) as store:
        await twenty(store)
        removed(path)
        with pytest.raises(StoreError, match=f"{alias}: its log"):
            await post(store, "lost")

    assert await posted_in(path) == TWENTY


class TestChangesOfSqlite:
    """Changes that SQLite itself makes to its files cause no error."""

    @pytest.mark.parametrize("copied_after", [1, 7, 100])
    async def test_a_copied_and_restarted_log_causes_no_error(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, copied_after: int
    ) -> None:
        monkeypatch.setattr(sqlite_store, "_CHECKPOINT_AFTER_CHANGES", copied_after)
        subjects = [str(number) for number in range(100)]
        async with opened(path) as store:
            for subject in subjects:
                await post(store, subject)

        assert await posted_in(path) == subjects

    @pytest.mark.parametrize("lost_bytes", [0, 1, 4000, 4120, 5000])
    async def test_a_log_left_by_a_kill_causes_no_error(self, path: Path, lost_bytes: int) -> None:
        """The kill may have cut off a write."""
        async with opened(path) as store:
            await twenty(store)
            left = killed(path, path.parent.with_name("after the kill"))
        os.truncate(log_of(left), log_of(left).stat().st_size - lost_bytes)

        async with opened(left) as store:
            for number in range(100):
                await post(store, str(number))

        assert len(await posted_in(left)) == (120 if not lost_bytes else 119)

    async def test_undoing_a_unit_too_large_for_memory_causes_no_error(self, path: Path) -> None:
        """Its pages are in the log already; the next unit overwrites them."""

        async def work(unit: Unit) -> None:
            for number in range(2000):
                await unit.add_transfer(posting("1", subject=f"{number} {'x' * 2000}"))
            raise ValueError

        async with opened(path) as store:
            await rows(store, "PRAGMA cache_size = 10")
            await post(store, "first")
            before = log_of(path).stat().st_size
            with pytest.raises(ValueError):  # noqa: PT011 -- it is ours
                await store.run(work)
            assert log_of(path).stat().st_size > before + 1_000_000
            for subject in TWENTY:
                await post(store, subject)

        assert await posted_in(path) == ["first", *TWENTY]


def write(content: bytes, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)


class TestEmptyFileBesideALog:
    @pytest.fixture
    async def left(self, path: Path) -> Path:
        """A database as a kill leaves it, with a log that holds changes."""
        async with opened(path) as store:
            await twenty(store)
            return killed(path, path.parent.with_name("after the kill"))

    @pytest.mark.parametrize("content", [b"", b"\0", b"\n"])
    async def test_an_empty_file_beside_a_log_is_refused_and_not_changed(
        self, left: Path, content: bytes
    ) -> None:
        write(content, left)
        before = contents(left.parent)

        assert await refusal(left) == (
            f"{left}: it is empty, but the file beside it that ends in -wal has its changes; "
            "restore the file that they belong to, or move both away to start with an empty store"
        )
        assert contents(left.parent) == before

    @pytest.mark.parametrize("content", [b"", b"\n"])
    async def test_an_empty_file_beside_an_empty_log_counts_as_new(
        self, path: Path, content: bytes
    ) -> None:
        """SQLite treats a file of one byte as empty, and so does the store."""
        write(content, path)
        write(b"", log_of(path))

        assert await posted_in(path) == []
        assert outside(path, "PRAGMA integrity_check") == [("ok",)]
