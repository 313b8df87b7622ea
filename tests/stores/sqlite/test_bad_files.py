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
from sandbox_sim.stores.sql.schema import MIGRATIONS
from sandbox_sim.stores.sqlite.sqlite_store import APPLICATION_ID, SqliteStore
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


def other_program(path: Path) -> Path:
    outside(path, "CREATE TABLE invoices (number)", "INSERT INTO invoices VALUES (1)")
    return path


def other_program_in_wal_mode(path: Path) -> Path:
    outside(path, "PRAGMA journal_mode = WAL", "CREATE TABLE invoices (number)")
    return path


def other_program_with_our_version(path: Path) -> Path:
    outside(path, "CREATE TABLE invoices (number)", "PRAGMA user_version = 1")
    return path


def other_program_before_its_first_table(path: Path) -> Path:
    outside(path, "PRAGMA user_version = 1")
    return path


def other_program_that_says_so(path: Path) -> Path:
    outside(path, "PRAGMA application_id = 42")
    return path


def newer(path: Path) -> Path:
    tables = "CREATE TABLE transactions (number)"
    outside(path, tables, f"PRAGMA application_id = {APPLICATION_ID}", "PRAGMA user_version = 1000")
    return path


def text(path: Path) -> Path:
    path.write_text("port = 8233\n" * 1000, "utf-8")
    return path


def a_word(path: Path) -> Path:
    path.write_bytes(b"hello")
    return path


def begun_like_a_database(path: Path) -> Path:
    path.write_bytes(b"SQLite format 3\x00" + b"\x5a" * 20_000)
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def below_a_file(path: Path) -> Path:
    path.write_text("no folder", "utf-8")
    return path / "state.sqlite3"


def further_below_a_file(path: Path) -> Path:
    path.write_text("no folder", "utf-8")
    return path / "state" / "state.sqlite3"


NO_FOLDER = "its folder cannot be made, because a file is in the way"

NOT_OURS = "it belongs to another program"


NEWER = f"it has version 1000 and this sandbox_sim knows up to {len(MIGRATIONS)}; install a newer"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (other_program, NOT_OURS),
        (other_program_in_wal_mode, NOT_OURS),
        (other_program_with_our_version, NOT_OURS),
        (other_program_before_its_first_table, NOT_OURS),
        (other_program_that_says_so, NOT_OURS),
        (newer, NEWER),
        (text, "it is not a SQLite database"),
        (a_word, "it is not a SQLite database"),
        (begun_like_a_database, "it is not a SQLite database"),
        (folder, "it cannot be opened or made there"),
        (below_a_file, NO_FOLDER),
        (further_below_a_file, NO_FOLDER),
    ],
)
async def test_what_cannot_be_used_is_named_and_left_alone(
    tmp_path: Path, made: Callable[[Path], Path], words: str
) -> None:
    path = made(tmp_path / "state.sqlite3")
    before = contents(tmp_path)

    assert (await refusal(path)).startswith(f"{path}: {words}")
    assert contents(tmp_path) == before


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
    async def path(self, tmp_path: Path) -> Path:
        """A file of this store with some hundred pages."""
        path = tmp_path / "state.sqlite3"
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


async def test_a_name_that_no_file_can_have_is_told_too(tmp_path: Path) -> None:
    """The settings refuse such a name; other code that opens a store must not wait for ever."""
    async with asyncio.timeout(SOON_S):
        with pytest.raises(ValueError, match="null"):
            await SqliteStore(tmp_path / "state\x00.sqlite3", VirtualClock()).open()


async def test_a_fault_while_it_runs_is_told_with_the_name_too(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite3"
    async with opened(path) as store:

        async def work(_unit: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        with pytest.raises(StoreError, match=f"{path}: disk I/O error"):
            await store.run(work)


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
