"""A file that cannot be used is not changed, and the error names the file and the reason."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import StoreError
from sandbox_sim.records.messages import HistoryQuery
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from tests.sample_records import SERVICE, every, message
from tests.sqlite_files import contents, opened, outside
from tests.stores.sqlite.conftest import refusal
from tests.stores.writes import prepared
from tests.units import unit_of

PAGE = 4096


INVOICES = "CREATE TABLE invoices (number)"

# Statements of another program on its own file.
FOREIGN_STATEMENTS = [
    (INVOICES, "INSERT INTO invoices VALUES (1)"),
    ("PRAGMA journal_mode = WAL", INVOICES),
    (INVOICES, "PRAGMA user_version = 1"),
    ("PRAGMA user_version = 1",),
    ("PRAGMA application_id = 42",),
]


async def assert_is_refused(path: Path, reason: str, folder: Path) -> None:
    before = contents(folder)

    assert (await refusal(path)).startswith(f"{path}: {reason}")
    assert contents(folder) == before


@pytest.mark.parametrize("statements", FOREIGN_STATEMENTS)
async def test_the_file_of_another_program_is_refused_and_not_changed(
    path: Path, statements: tuple[str, ...]
) -> None:
    outside(path, *statements)

    await assert_is_refused(path, "it belongs to another program", path.parent)


@pytest.mark.parametrize(
    "content",
    [b"port = 8233\n" * 1000, b"hello", b"SQLite format 3\x00" + b"\x5a" * 20_000],
    ids=["text", "a word", "with the first bytes of a database"],
)
async def test_a_file_that_is_not_a_database_is_refused_and_not_changed(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "state.sqlite3"
    path.write_bytes(content)

    await assert_is_refused(path, "it is not a SQLite database", path.parent)


async def test_a_path_that_cannot_be_a_file_is_refused(path: Path) -> None:
    folder, file = path.with_name("folder"), path.with_name("file")
    folder.mkdir()
    file.touch()

    await assert_is_refused(folder, "it cannot be opened or made there", path.parent)
    for below in (file / path.name, file / "state" / path.name):
        reason = "its folder cannot be made, because a file is in the way"
        await assert_is_refused(below, reason, path.parent)


def overwrite(path: Path, first: int, size: int) -> None:
    """Overwrite `size` bytes from the byte `first` on, counted from 0."""
    with path.open("r+b") as file:
        file.seek(first)
        file.write(b"\xff" * size)


def all_but_the_first_page(path: Path) -> None:
    overwrite(path, PAGE, path.stat().st_size - PAGE)


def the_list_of_tables(path: Path) -> None:
    overwrite(path, 100, PAGE - 100)


def cut_off(path: Path) -> None:
    os.truncate(path, 10 * PAGE)


class TestDamagedFile:
    @pytest.fixture
    async def path(self, path: Path) -> Path:
        """A file of this store with some hundred pages."""
        async with opened(path) as store:
            await store.run(prepared)
            for number in range(20):
                batch = [message(f"N{number}-{n}", message="x" * 400) for n in range(50)]
                await unit_of(store).add_messages(batch)
        return path

    @pytest.mark.parametrize("damage", [all_but_the_first_page, the_list_of_tables, cut_off])
    async def test_damage_is_found_at_the_start(
        self, path: Path, damage: Callable[[Path], None]
    ) -> None:
        damage(path)
        before = contents(path.parent)

        assert await refusal(path) == f"{path}: it is damaged"
        assert contents(path.parent) == before

    async def test_a_damaged_page_fails_only_the_units_that_read_it(self, path: Path) -> None:
        """The store does not check all pages at its start; large files would make it slow."""
        overwrite(path, 89 * PAGE, 21 * PAGE)
        before = contents(path.parent)

        async with opened(path) as store:
            query = HistoryQuery(SERVICE, page=1, limit=1000)
            with pytest.raises(StoreError, match=f"{path}: it is damaged"):
                await unit_of(store).history(query)
            # All other records can still be read, so the server goes on.
            assert await unit_of(store).transaction(SERVICE, "T1") is not None
            assert len(await unit_of(store).list_callbacks(every(SERVICE))) == 3

        assert contents(path.parent) == before


# Root may open everything, so this program gives up root's rights first.
OPEN_WITHOUT_ROOT = """
import asyncio, os, sys
from pathlib import Path
from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from sandbox_sim.ports import StoreError

async def result(path):
    try:
        await SqliteStore(path, VirtualClock()).open()
    except StoreError as error:
        return str(error)
    return f"{path}: opened"

if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for path in sys.argv[1:]:
    print(asyncio.run(result(Path(path))), flush=True)
"""


def errors_without_root(*paths: Path) -> list[str]:
    """The error for each path, in a process without root's rights."""
    done = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-c", OPEN_WITHOUT_ROOT, *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=15,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may read; only their owner may read those of pytest."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
async def test_the_error_names_a_path_without_permission(open_folder: Path) -> None:
    only_read, not_read = open_folder / "only read", open_folder / "not read"
    no_file, no_folder = open_folder / "shut" / "file", open_folder / "shut" / "folder" / "file"
    for path in (only_read, not_read):
        async with opened(path) as store:
            await store.run(prepared)
    only_read.chmod(0o444)
    not_read.chmod(0o000)
    no_file.parent.mkdir(mode=0o555)
    before = contents(open_folder)

    assert errors_without_root(only_read, not_read, no_file, no_folder) == [
        f"{only_read}: it cannot be written to",
        f"{not_read}: it cannot be written to",
        f"{no_file}: it cannot be opened or made there",
        f"{no_folder}: Permission denied",
    ]
    assert contents(open_folder) == before


async def test_the_error_of_a_running_store_names_its_file(path: Path) -> None:
    async with opened(path) as store:

        async def work(_unit: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        with pytest.raises(StoreError, match=f"{path}: disk I/O error"):
            await store.run(work)


async def test_a_name_with_a_null_byte_is_refused_at_once(path: Path) -> None:
    """The settings refuse such a name; other code that opens a store must not wait for ever."""
    async with asyncio.timeout(5):
        with pytest.raises(ValueError, match="null"):
            await SqliteStore(path.parent / "state\x00.sqlite3", VirtualClock()).open()
