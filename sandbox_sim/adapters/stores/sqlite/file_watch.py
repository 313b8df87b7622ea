"""Detects that the files of an open SQLite database were deleted, replaced or truncated.

Committed changes are only in the log (`-wal`) until they are copied to the database file. SQLite
does not look at the names again once both files are open: it would go on writing to a log that no
later start finds, or after bytes that are gone.

In WAL mode with `locking_mode = EXCLUSIVE`, only this process writes to the files. The log keeps
its inode, is rewritten from its start after a checkpoint, and never becomes shorter. Its first 32
bytes are its header, which stays as it is until the log is rewritten from its start; then the
sequence number in it and its first salt go up by the same step. Each page in the log follows a
header of 24 bytes that are never all zero. Source: https://sqlite.org/fileformat2.html#walformat
"""

import os
from enum import Enum
from pathlib import Path
from typing import Final

_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24


class FileFault(Enum):
    """What happened to the files."""

    DATABASE_GONE = "it was deleted or replaced"
    DATABASE_CUT = "it was truncated"
    LOG_GONE = "its log, the file that ends in -wal, was deleted or replaced"
    LOG_CUT = "its log, the file that ends in -wal, was truncated or overwritten"


class DatabaseFiles:
    """The database file and the log that SQLite has just opened; used by one thread.

    Raises `OSError` when there is no log: SQLite creates it with the first statement.
    """

    def __init__(self, path: Path, page_bytes: int) -> None:
        # SQLite follows symbolic links, so its log is beside the file that they lead to.
        self.database = path.resolve()
        self.log = _log_of(self.database)
        self._frame_bytes = _FRAME_HEADER_BYTES + page_bytes
        # Our own descriptor reaches the log even when its name does not.
        self.descriptor = os.open(self.log, os.O_RDWR)
        self._database_identity, self._database_bytes = _identity_and_size(self.database)
        self._log_identity, self._log_bytes = _identity_and_size(self.log)
        self._header = os.pread(self.descriptor, _HEADER_BYTES, 0)

    def close(self) -> None:
        """Close our descriptor of the log."""
        os.close(self.descriptor)

    def fault(self) -> FileFault | None:
        """What happened to either file since the last check; costs two `stat` calls."""
        return self._check_names()[0]

    def fault_after_commit(self) -> FileFault | None:
        """Like `fault`, and checks that the log still has its content from before the commit.

        A log that was truncated in between may have the expected size again, with zeros in the gap.
        The gap is detected when it covers a whole page of the log or its header.
        """
        fault, log_bytes = self._check_names()
        if fault is None and not self._log_is_unharmed(log_bytes):
            return FileFault.LOG_CUT
        return fault

    def log_is_whole(self) -> bool:
        """Whether the open log has all its content, even if its name is gone."""
        return self._log_is_unharmed(os.fstat(self.descriptor).st_size)

    def _check_names(self) -> tuple[FileFault | None, int]:
        """The fault that the two names show, and the size of the log in bytes."""
        identity, size = _identity_and_size(self.database)
        if identity != self._database_identity:
            return FileFault.DATABASE_GONE, 0
        if size < self._database_bytes:
            return FileFault.DATABASE_CUT, 0
        self._database_bytes = size
        identity, size = _identity_and_size(self.log)
        if identity != self._log_identity:
            return FileFault.LOG_GONE, size
        if size < self._log_bytes:
            return FileFault.LOG_CUT, size
        return None, size

    def _log_is_unharmed(self, size: int) -> bool:
        """Whether a log of this size begins as before and continues the known content."""
        header = os.pread(self.descriptor, _HEADER_BYTES, 0)
        if size < self._log_bytes or (self._log_bytes and not _is_successor(self._header, header)):
            return False
        if size > self._log_bytes:
            if self._ends_in_a_gap(self._log_bytes):
                return False
            self._log_bytes = size
        self._header = header
        return True

    def _ends_in_a_gap(self, size: int) -> bool:
        """Whether the last page of a log of this size is missing; a gap reads as zeros."""
        frames = (size - _HEADER_BYTES) // self._frame_bytes
        if frames < 1:
            return False
        last = _HEADER_BYTES + (frames - 1) * self._frame_bytes
        return not any(os.pread(self.descriptor, _FRAME_HEADER_BYTES, last))


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


def _is_successor(before: bytes, after: bytes) -> bool:
    """Whether a log header is unchanged, or is that of the log rewritten from its start."""
    if after == before:
        return True
    steps = _number(after, 12) - _number(before, 12)
    return (
        len(after) == _HEADER_BYTES
        and steps > 0
        and (_number(after, 16) - _number(before, 16) - steps) % 2**32 == 0
    )


def _number(header: bytes, offset: int) -> int:
    return int.from_bytes(header[offset : offset + 4], "big")
