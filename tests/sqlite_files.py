"""SQLite files: a store on one, and its rows, read by the store's connection or by another one."""

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.stores.sqlite.sqlite_store import Durability, SqliteStore, _SqliteUnit

# A folder in memory if the system has one, so that no test waits for the disk.
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 -- folders are made in it
UNLIMITED = 2**31 - 2  # pages; SQLite's own bound
SOON = 10  # seconds; a bound, reached only when something is broken


@asynccontextmanager
async def opened(
    path: Path, clock: Clock | None = None, durability: Durability = "process", **options: int
) -> AsyncIterator[SqliteStore]:
    """Open a store on this file, and close it at the end of the block."""
    store = SqliteStore(path, clock or VirtualClock(), durability, **options)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def busy(store: SqliteStore) -> AsyncIterator[None]:
    """Keep the store busy with one unit; the units that arrive wait, and then form one batch."""
    at_work, go_on = threading.Event(), threading.Event()

    async def wait(_unit: Unit) -> None:
        at_work.set()
        assert go_on.wait(SOON)

    first = asyncio.create_task(store.run(wait))
    assert await asyncio.to_thread(at_work.wait, SOON)
    try:
        yield
        await asyncio.sleep(0)  # now the tasks of the block have given their units,
        await asyncio.sleep(0)  # and the thread of the store has received them
    finally:
        go_on.set()
        await first


def connection_of(unit: Unit) -> sqlite3.Connection:
    """Return the store's own connection; use it only inside the unit, in the store's thread."""
    assert isinstance(unit, _SqliteUnit)
    return unit._cursor.connection


async def rows(store: Store, statement: str) -> list[Any]:
    """Run a statement on the store's own connection."""

    async def work(unit: Unit) -> list[Any]:
        return connection_of(unit).execute(statement).fetchall()

    return await store.run(work)


async def count(store: Store, table: str) -> int:
    """Return the number of rows of a table of the open file."""
    ((number,),) = await rows(store, f"SELECT count(*) FROM {table}")  # noqa: S608 -- of a test
    return int(number)


async def fill_disk(store: Store, spare_pages: int = 0) -> None:
    """Let the file grow by only `spare_pages`; then SQLite reports that the disk is full."""
    ((pages,),) = await rows(store, "PRAGMA page_count")
    await rows(store, f"PRAGMA max_page_count = {pages + spare_pages}")


async def free_disk(store: Store) -> None:
    """Let the file grow again."""
    await rows(store, f"PRAGMA max_page_count = {UNLIMITED}")


def outside(path: Path, *statements: str) -> list[Any]:
    """Run statements on a file that no store has open; return the rows of the last one."""
    found: list[Any] = []
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
        for statement in statements:
            found = connection.execute(statement).fetchall()
    return found


def killed(path: Path, folder: Path) -> Path:
    """A copy of the file as a kill of its server at this moment would leave it."""
    folder.mkdir()
    for part in path.parent.glob(f"{path.name}*"):
        shutil.copy(part, folder)
    return folder / path.name


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return the bytes of every file below a folder, and None for each folder."""
    return {
        str(found.relative_to(folder)): found.read_bytes() if found.is_file() else None
        for found in folder.rglob("*")
    }
