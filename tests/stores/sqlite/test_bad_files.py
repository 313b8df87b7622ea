"""A file that cannot be used: the error names it and says why, and the file stays unchanged."""

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
from tests.sample_records import SERVICE, every, message, posting
from tests.sqlite_files import contents, opened, outside
from tests.stores.writes import prepared
from tests.turns import SOON_S
from tests.units import unit_of

PAGE = 4096


async def refusal(path: Path) -> str:
    """The error message of a store that is opened on this path."""
    async with asyncio.timeout(SOON_S):
        with pytest.raises(StoreError) as told:
            await SqliteStore(path, VirtualClock()).open()
    return str(told.value)


INVOICES = "CREATE TABLE invoices (number)"

NOT_OURS = "it belongs to another program"

# Statements that another program ran on its file.
OTHERS = [
    (INVOICES, "INSERT INTO invoices VALUES (1)"),
    ("PRAGMA journal_mode = WAL", INVOICES),
    (INVOICES, "PRAGMA user_version = 1"),
    ("PRAGMA user_version = 1",),
    ("PRAGMA application_id = 42",),
]

NO_DATABASES = [b"port = 8233\n" * 1000, b"hello", b"SQLite format 3\x00" + b"\x5a" * 20_000]


async def assert_is_refused(path: Path, words: str, folder: Path) -> None:
    before = contents(folder)

    assert (await refusal(path)).startswith(f"{path}: {words}")
    assert contents(folder) == before


@pytest.mark.parametrize("statements", OTHERS)
async def test_the_file_of_another_program_is_named_and_left_alone(
    path: Path, statements: tuple[str, ...]
) -> None:
    outside(path, *statements)

    await assert_is_refused(path, NOT_OURS, path.parent)


@pytest.mark.parametrize("content", NO_DATABASES, ids=["text", "a word", "begun like one"])
async def test_so_is_what_is_not_a_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.sqlite3"
    path.write_bytes(content)

    await assert_is_refused(path, "it is not a SQLite database", path.parent)


async def test_so_is_a_place_where_no_file_can_be(path: Path) -> None:
    folder, file = path.with_name("folder"), path.with_name("file")
    folder.mkdir()
    file.touch()

    await assert_is_refused(folder, "it cannot be opened or made there", path.parent)
    for below in (file / path.name, file / "state" / path.name):
        words = "its folder cannot be made, because a file is in the way"
        await assert_is_refused(below, words, path.parent)


def overwrite(path: Path, first: int, size: int) -> None:
    """Overwrite so many bytes from the first one on, counted from 0."""
    with path.open("r+b") as file:
        file.seek(first)
        file.write(b"\xff" * size)


def all_but_the_first_page(path: Path) -> None:
    overwrite(path, PAGE, path.stat().st_size - PAGE)


def the_list_of_tables(path: Path) -> None:
    overwrite(path, 100, PAGE - 100)


def cut_off(path: Path) -> None:
    os.truncate(path, 10 * PAGE)


class TestDamaged:
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
    async def test_is_told_at_the_start(self, path: Path, damage: Callable[[Path], None]) -> None:
        damage(path)
        before = contents(path.parent)

        assert await refusal(path) == f"{path}: it is damaged"
        assert contents(path.parent) == before

    async def test_pages_in_the_middle_are_told_by_whoever_needs_them(self, path: Path) -> None:
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
TRY = """
import asyncio, os, sys
from pathlib import Path
from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from sandbox_sim.ports import StoreError

async def tell(path):
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
    print(asyncio.run(tell(Path(path))), flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
class TestPermissions:
    """A process without root's rights opens the paths."""

    @pytest.fixture
    def open_folder(self) -> Iterator[Path]:
        """A folder that every user may read; only their owner may read those of pytest."""
        with TemporaryDirectory() as name:
            folder = Path(name)
            folder.chmod(0o755)
            yield folder

    def told(self, *paths: Path) -> list[str]:
        """The error for each path, in a process without root's rights."""
        done = subprocess.run(  # noqa: S603 -- ourselves
            [sys.executable, "-c", TRY, *map(str, paths)],
            capture_output=True,
            text=True,
            timeout=15,
            check=True,
        )
        return done.stdout.splitlines()

    async def test_what_may_not_be_written_read_or_made(self, open_folder: Path) -> None:
        only_read, not_read = open_folder / "only read", open_folder / "not read"
        no_file, no_folder = open_folder / "shut" / "file", open_folder / "shut" / "folder" / "file"
        for path in (only_read, not_read):
            async with opened(path) as store:
                await store.run(prepared)
        only_read.chmod(0o444)
        not_read.chmod(0o000)
        no_file.parent.mkdir(mode=0o555)
        before = contents(open_folder)

        assert self.told(only_read, not_read, no_file, no_folder) == [
            f"{only_read}: it cannot be written to",
            f"{not_read}: it cannot be written to",
            f"{no_file}: it cannot be opened or made there",
            f"{no_folder}: Permission denied",
        ]
        assert contents(open_folder) == before


async def test_a_fault_while_it_runs_is_told_with_the_name_too(path: Path) -> None:
    async with opened(path) as store:

        async def work(_unit: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        with pytest.raises(StoreError, match=f"{path}: disk I/O error"):
            await store.run(work)

    # The settings refuse such a name; other code that opens a store must not wait for ever.
    async with asyncio.timeout(5):
        with pytest.raises(ValueError, match="null"):
            await SqliteStore(path.parent / "state\x00.sqlite3", VirtualClock()).open()


@pytest.mark.parametrize("replaced", [False, True])
async def test_nothing_is_answered_that_goes_into_a_file_without_a_name(
    tmp_path: Path, replaced: bool
) -> None:
    """SQLite alone would write on to the deleted file, which is gone when the server ends."""
    path = tmp_path / "state.sqlite3"
    async with opened(path) as store:
        path.unlink()
        if replaced:
            path.touch()

        for _ in range(2):
            with pytest.raises(
                StoreError, match=f"{path}: it was deleted or replaced while the server ran; start"
            ):
                await unit_of(store).add_transfer(posting())

    async with opened(path) as store:
        await unit_of(store).add_transfer(posting())
