"""Detects that the files of an open SQLite database were deleted, replaced or truncated.

Committed changes are only in the log (`-wal`) until they are copied to the database file. SQLite
does not look at the names again once both files are open: it would go on writing to a log that no
later start finds, or after bytes that are gone. In WAL mode with `locking_mode = EXCLUSIVE` only
this process writes to the files, and neither becomes shorter while it runs. A log that was
truncated just before SQLite wrote after its old end is longer than before; it has zeros where it
was cut. Each of its headers begins otherwise: https://sqlite.org/fileformat2.html#walformat.
"""

import logging
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

from sandbox_sim.ports import StoreError

_DATABASE_GONE: Final = "it was deleted or replaced while the server ran; start the server again"

_DATABASE_TRUNCATED: Final = (
    "it was truncated while the server ran; stop the server and restore a copy of the file"
)

_LOG_GONE: Final = (
    "its log, the file that ends in -wal, was deleted or replaced while the server ran; "
    "stop the server with SIGTERM, which saves what it answered, and start it again"
)

_LOG_TRUNCATED: Final = (
    "its log, the file that ends in -wal, was truncated while the server ran; part of what was "
    "answered may be lost; start the server again"
)

# Of the log and of each of its frames, which is a header and a page.
_LOG_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24

log = logging.getLogger("sandbox_sim.store")


class WatchedFiles:
    """The files of a connection; after the first fault every check raises.

    Raises `OSError` when there is no log: SQLite creates it with the first statement.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        # SQLite follows symbolic links, so its log is beside the file that they lead to.
        self._database = path.resolve()
        self._log = _log_of(self._database)
        self._database_identity, self._database_bytes = _identity_and_size(self._database)
        self._open_log = self._log.open("rb", buffering=0)
        self._log_identity, self._log_bytes = _identity_and_size(self._log)
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        self._frame_bytes = _FRAME_HEADER_BYTES + page_bytes
        self._headers = self._find_headers()
        self._fault: str | None = None

    def check(self) -> None:
        """Compare both files with the last check: two `stat` calls and two short reads.

        It runs before each transaction, and before its commit is acknowledged.

        Raises:
            StoreError: what happened to a file, in words.
        """
        if self._fault is None:
            self._fault = self._find_fault()
            if self._fault is not None:
                log.error("%s: %s", self._database, self._fault)
            if self._fault == _DATABASE_GONE:
                # The next start would use it as the log of the file that has the name now.
                with suppress(FileNotFoundError):
                    self._log.replace(f"{self._log}.aside")
        if self._fault is not None:
            raise StoreError(self._fault)

    def disconnect(self) -> None:
        """Close the connection. SQLite copies the log to the database file and deletes it.

        That also saves a log that lost only its name. A truncated file stays as it is, for people:
        a connection that is interrupted copies and deletes nothing when it is closed.
        """
        if self._fault in {_DATABASE_TRUNCATED, _LOG_TRUNCATED}:
            self._connection.interrupt()
        self._open_log.close()
        self._connection.close()

    def _find_fault(self) -> str | None:
        identity, size = _identity_and_size(self._database)
        if identity != self._database_identity:
            return _DATABASE_GONE
        if size < self._database_bytes:
            return _DATABASE_TRUNCATED
        self._database_bytes = size
        identity, size = _identity_and_size(self._log)
        if identity != self._log_identity:
            return _LOG_GONE
        if size < self._log_bytes or not all(map(self._is_written, self._headers)):
            return _LOG_TRUNCATED
        if size > self._log_bytes:
            self._log_bytes = size
            self._headers = self._find_headers()
        return None

    def _find_headers(self) -> list[int]:
        """Where the header of the log and that of its last frame begin, if they are written."""
        frames = (self._log_bytes - _LOG_HEADER_BYTES) // self._frame_bytes
        last_frame = _LOG_HEADER_BYTES + max(0, frames - 1) * self._frame_bytes
        return [offset for offset in (0, last_frame) if self._is_written(offset)]

    def _is_written(self, offset: int) -> bool:
        self._open_log.seek(offset)
        return any(self._open_log.read(4))


def is_empty_with_log(path: Path) -> bool:
    """Whether a file is empty while the log of a database is beside it.

    SQLite also treats a file of one byte as empty: it creates a new database there and deletes the
    log.
    """
    database = path.resolve()
    try:
        return database.stat().st_size <= 1 and _log_of(database).stat().st_size > 0
    except OSError:
        return False


def _log_of(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


def _identity_and_size(path: Path) -> tuple[tuple[int, int], int]:
    """Device and inode of the file with this name, and its size; zeros if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0), 0
    return (found.st_dev, found.st_ino), found.st_size
