"""The SQLite store: one file; an answered request has been saved.

One thread owns the connection. It takes all waiting units of work, runs them in one database
transaction, commits, and only then returns their results, so many requests share one commit. If a
unit raises, the whole batch is rolled back and its units run again one by one, so that only the
failing unit fails.
"""

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, Literal, NamedTuple, TypeVar

from sandbox_sim.ports import Clock, DataRefused, StoreError, StoreInUse, Topic, Unit
from sandbox_sim.ports.tasks import RunningTasks
from sandbox_sim.records.events import StoredChange
from sandbox_sim.records.transactions import KEPT_IN_A_DATABASE
from sandbox_sim.stores.change_notifier import ChangeNotifier
from sandbox_sim.stores.sql import schema
from sandbox_sim.stores.sql.clean_up import CleanUp
from sandbox_sim.stores.sql.rows import Row
from sandbox_sim.stores.sql.sql_unit import SqlUnit
from sandbox_sim.stores.sqlite.file_watch import WatchedFiles, is_empty_with_log

T = TypeVar("T")


Durability = Literal["process", "power"]


# "sbox": distinguishes our files from the SQLite files of other programs.
APPLICATION_ID: Final = 0x73626F78

_MAX_BATCH: Final = 256

# The lock lasts as long as the process; the system releases it even after a kill.
_LOCK: Final = "PRAGMA locking_mode = EXCLUSIVE"

_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    # A limit for units that write this much in one go; see `_CHECKPOINT_AFTER_CHANGES`.
    "PRAGMA wal_autocheckpoint = 8000",
    # 8 MiB; the system caches the other pages of the file.
    "PRAGMA cache_size = -8192",
    # Some builds overwrite deleted data with zeros. That takes time and hides little: the addresses
    # with a password (D38) were in the file for as long as their callbacks.
    "PRAGMA secure_delete = OFF",
)

# After this many row changes the log is copied to the file, when the answers have been sent; the
# next units wait some milliseconds for it.
_CHECKPOINT_AFTER_CHANGES: Final = 1000

# VACUUM INTO gives its copy the next number; `_migrate` counts the changes of the tables out.
_IDENTITY: Final = "(SELECT schema_version FROM pragma_schema_version)"

_CHECKPOINT: Final = "PRAGMA wal_checkpoint(PASSIVE)"

_SYNCHRONOUS: Final[dict[Durability, str]] = {"process": "NORMAL", "power": "FULL"}

_REASONS: Final = {
    "SQLITE_BUSY": "another server is using it",
    "SQLITE_CANTOPEN": "it cannot be opened or made there",
    "SQLITE_CORRUPT": "it is damaged",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_NOTADB": "it is not a SQLite database",
    "SQLITE_READONLY": "it cannot be written to",
}

# Errors in our code, not of the file: callers must not treat them as a store that is unavailable.
_PROGRAMMING_ERRORS: Final = (
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)

# A text with an unpaired surrogate, a number beyond 64 bits, a value that is too long.
_DATA_ERRORS: Final = (UnicodeEncodeError, OverflowError, sqlite3.DataError)


class _WorkItem(NamedTuple):
    """A unit of work that waits for the thread, and the future of its caller.

    records_changes: whether it records what it writes.
    """

    work: Callable[[SqlUnit], Awaitable[Any]]
    future: asyncio.Future[Any]
    records_changes: bool


class _Result(NamedTuple):
    """The result or the exception of a work item, what it announced, and what it changed."""

    future: asyncio.Future[Any]
    result: object
    error: BaseException | None
    announced: frozenset[Topic] = frozenset()
    changes: Sequence[StoredChange] | None = None


class _BatchResult(NamedTuple):
    """The results of a batch, and the due time of its earliest new job."""

    results: Sequence[_Result]
    earliest_due: datetime | None = None


@dataclass(eq=False, repr=False)
class SqliteStore(ChangeNotifier):
    """The default `Store` of `serve`.

    durability: with `process`, commits survive a kill of the process; with `power`, a power failure
    too. keep_transactions: how many are kept, beside those that are never dropped.
    """

    path: Path
    clock: Clock
    durability: Durability = "process"
    keep_transactions: int = KEPT_IN_A_DATABASE
    joined_others = False

    def __post_init__(self) -> None:
        super().__init__()
        # The units submitted in this iteration of the event loop, and the batches for the thread;
        # None ends it.
        self._pending: list[_WorkItem] = []
        self._queue: SimpleQueue[Sequence[_WorkItem] | None] = SimpleQueue()
        self._copies: SimpleQueue[tuple[Path, asyncio.Future[Path]]] = SimpleQueue()
        self._tasks = RunningTasks()
        self._thread: threading.Thread | None = None
        self._clean_up = CleanUp(self.run, self.clock, self.keep_transactions)
        self._files: WatchedFiles

    async def open(self) -> None:
        """Open the file and migrate it to the newest version; raises `StoreError` that says why
        not.
        """
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._thread = threading.Thread(
            target=self._run_thread,
            args=(asyncio.get_running_loop(), opened),
            name="sqlite",
            daemon=True,
        )
        self._thread.start()
        try:
            await opened
        except Exception:
            self._thread = None
            raise

    async def close(self) -> None:
        """Wait for the submitted units and close the file."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._clean_up.cancel()
            self._submit()
            self._queue.put(None)
            await asyncio.to_thread(thread.join)

    async def run(self, work: Callable[[SqlUnit], Awaitable[T]]) -> T:
        """Run `work` in the next commit and return its result afterwards; raises what it raised."""
        if self._thread is None:
            raise StoreError(f"{self.path}: the store is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if not self._pending:
            loop.call_soon(self._submit)
        self._pending.append(_WorkItem(work, future, any(self._readers)))
        return await future

    async def back_up(self) -> Path:
        """Write a copy beside the file; the lock of the file keeps other programs from doing so."""
        stamp = self.clock.machine_now().strftime("%Y%m%dT%H%M%S.%fZ")
        copy = self.path.with_name(f"{self.path.stem}-{stamp}.backup{self.path.suffix}")
        future: asyncio.Future[Path] = asyncio.get_running_loop().create_future()
        self._copies.put((copy, future))
        await self.run(_do_nothing)  # the thread makes the copy after this unit
        return await future

    def _submit(self) -> None:
        """Wake the thread once for all units of this iteration of the event loop."""
        ordered, self._pending = self._pending, []
        for first in range(0, len(ordered), _MAX_BATCH):
            self._queue.put(ordered[first : first + _MAX_BATCH])

    def _run_thread(self, loop: asyncio.AbstractEventLoop, opened: asyncio.Future[None]) -> None:
        """The main function of the thread."""
        try:
            connection = self._connect()
        except Exception as error:
            loop.call_soon_threadsafe(
                _resolve, [_Result(opened, None, self._as_store_error(error))]
            )
            return
        try:
            loop.call_soon_threadsafe(_resolve, [_Result(opened, None, None)])
            cursor = connection.cursor()
            changes = changes_at_checkpoint = connection.total_changes
            while batch := self._next_batch():
                committed = [*self._commit(cursor, batch)]
                before, changes = changes, connection.total_changes
                for each in committed:
                    loop.call_soon_threadsafe(self._finish, each, changes > before)
                # Also after a failure: a long log may be the reason why the disk is full.
                failed = any(isinstance(each.results[0].error, StoreError) for each in committed)
                if failed or changes - changes_at_checkpoint >= _CHECKPOINT_AFTER_CHANGES:
                    changes_at_checkpoint = changes
                    self._checkpoint(cursor)
                while not self._copies.empty():
                    result = self._write_copy(cursor, *self._copies.get())
                    loop.call_soon_threadsafe(_resolve, [result])
        finally:
            self._files.disconnect()

    def _checkpoint(self, cursor: sqlite3.Cursor) -> None:
        """Copy the log to the file; what cannot be copied stays in the log until the next time."""
        with contextlib.suppress(sqlite3.Error, OSError, StoreError):
            self._files.check()
            cursor.execute(_CHECKPOINT).fetchall()

    def _write_copy(
        self, cursor: sqlite3.Cursor, copy: Path, future: asyncio.Future[Path]
    ) -> _Result:
        """Write a copy; the copy gets its name only when it is complete."""
        partial = copy.with_name(f"{copy.name}.partial")
        try:
            self._files.check()
            cursor.execute("VACUUM INTO ?", (str(partial),))
            partial.replace(copy)
        except (sqlite3.Error, OSError, StoreError) as error:
            with contextlib.suppress(OSError):
                partial.unlink()
            return _Result(future, None, self._as_store_error(error))
        return _Result(future, copy, None)

    def _next_batch(self) -> Sequence[_WorkItem]:
        """All waiting units; empty when the store is to be closed."""
        items = self._queue.get()
        batch: list[_WorkItem] = []
        while items is not None:
            batch.extend(items)
            if self._queue.empty() or len(batch) >= _MAX_BATCH:
                return batch
            items = self._queue.get()
        if batch:
            self._queue.put(None)
        return batch

    def _commit(self, cursor: sqlite3.Cursor, batch: Sequence[_WorkItem]) -> Iterator[_BatchResult]:
        """Run a batch as one transaction; if that fails, run each unit in its own."""
        unit = _SqliteUnit(cursor, self.clock)
        try:
            self._files.check()  # SQLite itself does not look at them
            cursor.execute("BEGIN IMMEDIATE")
            results = [_execute(item, unit) for item in batch]
            cursor.execute("COMMIT")
            self._files.check()
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                cursor.connection.rollback()
            if len(batch) == 1:
                yield _BatchResult([_Result(batch[0].future, None, self._as_store_error(error))])
                return
            for item in batch:
                yield from self._commit(cursor, [item])
        else:
            yield _BatchResult(results, unit.earliest_due)

    def _finish(self, committed: _BatchResult, wrote: bool) -> None:
        """In the event loop: return results and notify listeners."""
        if committed.earliest_due is not None:
            self._job_listener(committed.earliest_due)
        # Units without announcements do not wait: a listener may itself wait for one of them.
        self._resolve([each for each in committed.results if not each.announced])
        announcing = [each for each in committed.results if each.announced]
        if announcing:
            self._tasks.start(self._notify_listeners(announcing))
        for listener in self._watchers if wrote else ():
            listener()
        if self._thread is not None:
            self._clean_up.start_if_due()

    async def _notify_listeners(self, announcing: Sequence[_Result]) -> None:
        """Return results after all listeners have run, which may take more units of work."""
        await self._notify_topics(frozenset().union(*(each.announced for each in announcing)))
        self._resolve(announcing)

    def _resolve(self, results: Sequence[_Result]) -> None:
        _resolve(results)
        for each in results:
            if each.changes:
                self._on_changes(each.changes)

    def _connect(self) -> sqlite3.Connection:
        self._make_folder()
        connection = sqlite3.connect(self.path, timeout=0, isolation_level=None)
        try:
            connection.execute(_LOCK)
            versions = self._versions(connection)
            for pragma in (*_PRAGMAS, f"PRAGMA synchronous = {_SYNCHRONOUS[self.durability]}"):
                connection.execute(pragma)
            self._migrate(connection, *versions)
            connection.execute("UPDATE jobs SET lease_until = 0 WHERE lease_until > 0")
            self._files = WatchedFiles(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_folder(self) -> None:
        """Create the folder, and refuse files for which SQLite's own error is unclear."""
        if self.path.exists() and not os.access(self.path, os.W_OK):
            raise StoreError("it cannot be written to")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise StoreError("its folder cannot be made, because a file is in the way") from None
        if is_empty_with_log(self.path):
            raise StoreError(
                "it is empty, but the file beside it that ends in -wal has its changes; "
                "restore the file that they belong to, or move both away to start with an empty "
                "store"
            )

    def _versions(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """The schema version of our file, 0 for a new one, and the newest version.

        Raises `StoreError` for any other file, before anything in it changes.
        """
        connection.execute("BEGIN EXCLUSIVE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        connection.execute("COMMIT")
        if owner != APPLICATION_ID and (owner or version or tables):
            raise StoreError("it belongs to another program")
        return version, schema.newest_version(version, "file")

    def _migrate(self, connection: sqlite3.Connection, version: int, newest: int) -> None:
        """Migrate the tables to the newest version, completely or not at all."""
        if version == newest:
            return
        script = schema.script(version, schema.SQLITE)
        (before,) = connection.execute(f"SELECT {_IDENTITY}").fetchone()
        has_origin = connection.execute(_SqliteUnit.COLUMN_NAMES, ("origin",)).fetchone()
        update_origin = f"UPDATE origin SET identity = identity + {_IDENTITY} - {before};"
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {newest};"
                f"PRAGMA application_id = {APPLICATION_ID};"
                f"{update_origin if has_origin else ''} COMMIT"
            )
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                connection.rollback()
            raise StoreError(
                f"it could not be brought from version {version} to {newest}, "
                f"and is as it was: {_describe_error(error)}"
            ) from error

    def _as_store_error(self, error: BaseException) -> BaseException:
        """A `StoreError` for problems of the file; any other error unchanged."""
        if isinstance(error, _PROGRAMMING_ERRORS):
            return error
        if isinstance(error, _DATA_ERRORS):
            return DataRefused(f"{self.path}: it cannot hold one of the values")
        if isinstance(error, sqlite3.Error):
            problem = _describe_error(error)
            is_busy = problem == _REASONS["SQLITE_BUSY"]
            return (StoreInUse if is_busy else StoreError)(f"{self.path}: {problem}")
        if isinstance(error, OSError):
            return StoreError(f"{self.path}: {error.strerror}")
        if isinstance(error, StoreError):
            return StoreError(f"{self.path}: {error}")
        return error


class _SqliteUnit(SqlUnit):
    """A unit whose coroutines never suspend: each statement is done when the call returns."""

    LEASE = "1"
    COLUMN_NAMES = "SELECT name FROM pragma_table_info(?)"
    IDENTITY = _IDENTITY

    def __init__(self, cursor: sqlite3.Cursor, clock: Clock) -> None:
        super().__init__(clock)
        self._cursor = cursor

    async def _fetch(self, statement: str, *values: object) -> Sequence[Row]:
        return self._cursor.execute(statement, values).fetchall()

    async def _lock(self, *key: object) -> None:
        """Do nothing: there is one writer, so no other unit runs."""

    async def _lock_all(self) -> None:
        """Do nothing: no other unit runs."""

    async def _execute_many(self, statement: str, values: Iterable[Row]) -> None:
        self._cursor.executemany(statement, values)


def _describe_error(error: sqlite3.Error) -> str:
    """The problem of the file in words; SQLite's own text where we have none."""
    kind = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
    return _REASONS.get(kind, str(error))


async def _do_nothing(_unit: Unit) -> None:
    """A unit that does nothing."""


def _run_sync(work: Awaitable[T]) -> T:
    """Run a coroutine that awaits only methods of units; raises `RuntimeError` if it suspends."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise RuntimeError("a unit of work awaited something that is not its unit")


def _execute(item: _WorkItem, unit: "_SqliteUnit") -> _Result:
    """Run a work item in a unit that other items of the batch share."""
    unit.announced = set()
    unit.changes = [] if item.records_changes else None
    result = _run_sync(item.work(unit))
    return _Result(item.future, result, None, frozenset(unit.announced), unit.changes)


def _resolve(results: Iterable[_Result]) -> None:
    """Set the results of the futures whose callers still wait."""
    for future, result, error, *_ in results:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
