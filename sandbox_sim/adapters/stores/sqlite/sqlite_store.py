"""State in one SQLite file: what was answered was saved.

One thread owns the connection. It takes every unit of work that waits, does them in one database
transaction, commits, and only then lets their answers go: many requests share one commit. A unit
that raises is rolled back with its batch, and the batch is done again one by one, so that only
the one that fails, fails.
"""

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, Literal, NamedTuple, TypeVar

from sandbox_sim.adapters.stores.change_notifier import ChangeNotifier
from sandbox_sim.adapters.stores.sql import schema
from sandbox_sim.adapters.stores.sql.rows import Row
from sandbox_sim.adapters.stores.sql.sql_unit import FORGET_EVERY, SqlUnit
from sandbox_sim.adapters.stores.sqlite.file_watch import empty_beside_log
from sandbox_sim.adapters.stores.sqlite.log_rescue import WatchedFiles
from sandbox_sim.gateway.ports import Clock, StoreError, Topic, Unit

T = TypeVar("T")

Durability = Literal["process", "power"]

# "sbox": tells our files from the SQLite files of other programs.
APPLICATION_ID: Final = 0x73626F78
_IN_ONE_COMMIT: Final = 256
# Held as long as the server lives, and let go by the system even when it is killed.
_LOCKED: Final = "PRAGMA locking_mode = EXCLUSIVE"
_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    # A bound for units that write that much by themselves; see `_COPIED_AFTER`.
    "PRAGMA wal_autocheckpoint = 8000",
    # 8 MiB; the system keeps the other pages of the file.
    "PRAGMA cache_size = -8192",
    # Some builds write zeros over what is deleted. That takes time and hides little: the addresses
    # that are kept with a password (D38) stood in the file for as long as their callbacks did.
    "PRAGMA secure_delete = OFF",
)
# So many changes of rows are copied from the log to the file at once, behind the answers that have
# left; the next ones wait some milliseconds for that.
_COPIED_AFTER: Final = 1000
_COPY: Final = "PRAGMA wal_checkpoint(PASSIVE)"
_SYNCHRONOUS: Final[dict[Durability, str]] = {"process": "NORMAL", "power": "FULL"}
_REASONS: Final = {
    "SQLITE_BUSY": "another server is using it; choose another file, or --store memory:",
    "SQLITE_CANTOPEN": "it cannot be opened or made there",
    "SQLITE_CORRUPT": "it is damaged",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_NOTADB": "it is no SQLite database",
    "SQLITE_READONLY": "it cannot be written to",
}
# Faults of a unit, and none of the file: whoever asked must not take them for a store that is away.
_FAULTS_OF_OURS: Final = (
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)


class _Order(NamedTuple):
    """A unit of work that waits for the thread, and the future of its caller."""

    work: Callable[[Unit], Awaitable[Any]]
    done: asyncio.Future[Any]


class _Done(NamedTuple):
    """What became of an order: a result, or what it raised; and what it announced."""

    done: asyncio.Future[Any]
    result: object
    error: BaseException | None
    announced: frozenset[Topic] = frozenset()


class _Committed(NamedTuple):
    """What became of a batch: its orders, the earliest job it added, and whether SQLite failed."""

    done: list[_Done]
    added: datetime | None
    failed: bool = False


class SqliteStore(ChangeNotifier):
    """The default `Store` of `serve`.

    durability: `process` survives a kill of the process, `power` a cut of the mains too.
    """

    def __init__(self, path: Path, clock: Clock, durability: Durability = "process") -> None:
        super().__init__()
        self._path = path
        self._clock = clock
        self._synchronous = _SYNCHRONOUS[durability]
        # What was ordered in this turn of the loop, and what the thread is to do, None at the end.
        self._ordered: list[_Order] = []
        self._orders: SimpleQueue[Sequence[_Order] | None] = SimpleQueue()
        self._announcing: set[asyncio.Task[None]] = set()
        self._thread: threading.Thread | None = None
        self._forget_at: datetime | None = None
        self._files: WatchedFiles

    async def open(self) -> None:
        """Open the file and bring it up to date; `StoreError` says why that cannot be."""
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._thread = threading.Thread(
            target=self._live, args=(asyncio.get_running_loop(), opened), name="sqlite", daemon=True
        )
        self._thread.start()
        try:
            await opened
        except Exception:
            self._thread = None
            raise

    async def close(self) -> None:
        """Finish what was asked for, and close the file."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._hand_over()
            self._orders.put(None)
            await asyncio.to_thread(thread.join)

    async def run(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        """Do `work` in the next commit; returns when that is done."""
        if self._thread is None:
            raise StoreError(f"{self._path}: the store is closed")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        if not self._ordered:
            loop.call_soon(self._hand_over)
        self._ordered.append(_Order(work, done))
        return await done

    def _hand_over(self) -> None:
        """Wake the thread once for what was ordered in a turn of the loop."""
        ordered, self._ordered = self._ordered, []
        for first in range(0, len(ordered), _IN_ONE_COMMIT):
            self._orders.put(ordered[first : first + _IN_ONE_COMMIT])

    def _live(self, loop: asyncio.AbstractEventLoop, opened: asyncio.Future[None]) -> None:
        """The life of the thread."""
        try:
            connection = self._connect()
        except Exception as error:
            loop.call_soon_threadsafe(_settle, [_Done(opened, None, self._in_words(error))])
            return
        try:
            loop.call_soon_threadsafe(_settle, [_Done(opened, None, None)])
            cursor = connection.cursor()
            changes = copied = connection.total_changes
            while batch := self._next_batch():
                committed = self._commit(cursor, batch)
                before, changes = changes, connection.total_changes
                loop.call_soon_threadsafe(self._tell, committed, changes > before)
                # After a failure too: the log may be what there is no room for.
                if committed.failed or changes - copied >= _COPIED_AFTER:
                    copied = changes
                    self._copy(cursor)
        finally:
            self._files.disconnect()

    def _copy(self, cursor: sqlite3.Cursor) -> None:
        """Copy the log to the file; what cannot be copied stays in the log until the next time."""
        with contextlib.suppress(sqlite3.Error, OSError, StoreError):
            self._files.check()
            cursor.execute(_COPY).fetchall()

    def _next_batch(self) -> Sequence[_Order]:
        """Whatever waits; nothing when the store is to be closed."""
        orders = self._orders.get()
        batch: list[_Order] = []
        while orders is not None:
            batch.extend(orders)
            if self._orders.empty() or len(batch) >= _IN_ONE_COMMIT:
                return batch
            orders = self._orders.get()
        if batch:
            self._orders.put(None)
        return batch

    def _commit(self, cursor: sqlite3.Cursor, batch: Sequence[_Order]) -> _Committed:
        """Do a batch as one transaction; if that fails, each order by itself."""
        unit = _SqliteUnit(cursor, self._clock)
        try:
            self._begin(cursor)
            done = [_do(order, unit) for order in batch]
            self._forget(unit)
            cursor.execute("COMMIT")
            self._files.check_after_commit()
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                cursor.connection.rollback()
            if len(batch) == 1:
                failed = _Done(batch[0].done, None, self._in_words(error))
                return _Committed([failed], None, isinstance(error, sqlite3.Error))
            alone = [self._commit(cursor, [order]) for order in batch]
            return _Committed(
                [one for committed in alone for one in committed.done],
                min((each.added for each in alone if each.added is not None), default=None),
                any(each.failed for each in alone),
            )
        return _Committed(done, unit.added)

    def _begin(self, cursor: sqlite3.Cursor) -> None:
        """Begin a transaction; SQLite itself would write on into a file without a name."""
        self._files.check()
        cursor.execute("BEGIN IMMEDIATE")

    def _forget(self, unit: "_SqliteUnit") -> None:
        now = self._clock.now()
        if self._forget_at is None or now >= self._forget_at:
            self._forget_at = now + FORGET_EVERY
            _driven(unit.forget(now))

    def _tell(self, committed: _Committed, wrote: bool) -> None:
        """In the loop's thread: let the answers go, and whoever watches know."""
        if committed.added is not None and self._notice is not None:
            self._notice(committed.added)
        # The others wait for nobody: whoever is told of an announcement may be one of them.
        _settle(one for one in committed.done if not one.announced)
        announcers = [one for one in committed.done if one.announced]
        if announcers:
            task = asyncio.create_task(self._announce(announcers))
            self._announcing.add(task)
            task.add_done_callback(self._announcing.discard)
        for notice in self._watchers if wrote else ():
            notice()

    async def _announce(self, announcers: Sequence[_Done]) -> None:
        """Let the answers go when all who watch have heard; that may take more units of work."""
        await self._topic_notifier.tell(frozenset().union(*(one.announced for one in announcers)))
        _settle(announcers)

    def _connect(self) -> sqlite3.Connection:
        self._make_folder()
        connection = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        try:
            connection.execute(_LOCKED)
            version = self._version(connection)
            for pragma in (*_PRAGMAS, f"PRAGMA synchronous = {self._synchronous}"):
                connection.execute(pragma)
            self._migrate(connection, version)
            connection.execute("UPDATE jobs SET lease_until = 0 WHERE lease_until > 0")
            self._files = WatchedFiles(connection, self._path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_folder(self) -> None:
        """SQLite itself says of a file that it may only read no more than that the disk failed."""
        if self._path.exists() and not os.access(self._path, os.W_OK):
            raise StoreError("it cannot be written to")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise StoreError("its folder cannot be made, because a file is in the way") from None
        if empty_beside_log(self._path):
            raise StoreError(
                "it is empty, but the file beside it that ends in -wal holds changes of it; "
                "restore the file that they belong to, or move both away to begin anew"
            )

    def _version(self, connection: sqlite3.Connection) -> int:
        """The version of a file of ours, 0 of a new one; any other is refused before it changes."""
        connection.execute("BEGIN EXCLUSIVE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        connection.execute("COMMIT")
        if owner != APPLICATION_ID and (owner or version or tables):
            raise StoreError("it belongs to another program")
        newest = len(schema.MIGRATIONS)
        if version > newest:
            raise StoreError(
                f"it has version {version} and this sandbox_sim knows up to {newest}; "
                "install a newer sandbox_sim or choose another file"
            )
        return int(version)

    def _migrate(self, connection: sqlite3.Connection, version: int) -> None:
        """Bring the tables to the newest version, all the way or not at all."""
        newest = len(schema.MIGRATIONS)
        if version == newest:
            return
        scripts = [
            schema.script(number, serial="INTEGER PRIMARY KEY")
            for number in range(version + 1, newest + 1)
        ]
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE; {''.join(scripts)} PRAGMA user_version = {newest};"
                f"PRAGMA application_id = {APPLICATION_ID}; COMMIT"
            )
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                connection.rollback()
            raise StoreError(
                f"it could not be brought from version {version} to {newest}, "
                f"and is as it was: {_reason(error)}"
            ) from error

    def _in_words(self, error: BaseException) -> BaseException:
        """What went wrong with the file, as a sentence; any other error as it is."""
        if isinstance(error, _FAULTS_OF_OURS):
            return error
        if isinstance(error, sqlite3.Error):
            return StoreError(f"{self._path}: {_reason(error)}")
        if isinstance(error, OSError):
            return StoreError(f"{self._path}: {error.strerror}")
        if isinstance(error, UnicodeEncodeError):
            return StoreError(f"{self._path}: it cannot hold one of the values")
        if isinstance(error, StoreError):
            return StoreError(f"{self._path}: {error}")
        return error


class _SqliteUnit(SqlUnit):
    """Its coroutines never suspend: each statement is done when the call returns."""

    LEASE = "1"
    COLUMNS = "SELECT name FROM pragma_table_info(?)"

    def __init__(self, cursor: sqlite3.Cursor, clock: Clock) -> None:
        super().__init__(clock)
        self._cursor = cursor

    async def _rows(self, statement: str, *values: object) -> Sequence[Row]:
        return self._cursor.execute(statement, values).fetchall()

    async def _lock(self, *key: object) -> None:
        """There is one writer, so no other unit works on anything."""

    async def _alone(self) -> None:
        """It always is."""

    async def _each(self, statement: str, values: Iterable[Row]) -> None:
        self._cursor.executemany(statement, values)


def _reason(error: sqlite3.Error) -> str:
    """What is wrong with the file, in our words where we have any."""
    kind = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
    return _REASONS.get(kind, str(error))


def _driven(work: Awaitable[T]) -> T:
    """The result of a coroutine that awaits nothing but units."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise RuntimeError("a unit of work awaited something that is not its unit")


def _do(order: _Order, unit: "_SqliteUnit") -> _Done:
    """Do what was ordered, in a unit that others may have worked in before."""
    unit.announced = set()
    result = _driven(order.work(unit))
    return _Done(order.done, result, None, frozenset(unit.announced))


def _settle(done: Iterable[_Done]) -> None:
    """Give callers that still wait what they waited for."""
    for future, result, error, _ in done:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
