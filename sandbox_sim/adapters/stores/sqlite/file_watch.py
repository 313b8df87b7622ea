"""Sees when the files of an open SQLite database are deleted, replaced or cut short.

What is committed stands in the log (`-wal`) alone until it is copied into the database file, and
SQLite looks at neither name again once both are open: it would go on writing into a log that no
later start can find, or after bytes that are gone.

In WAL mode with `locking_mode = EXCLUSIVE`, only this process writes to the files. The log keeps
its inode, is rewritten from its start after a checkpoint, and never becomes shorter. Its first 32
bytes are its header, which stays as it is until the log is rewritten from its start; then the
sequence number in it and its first salt go up by the same step. Each page in the log stands behind
24 bytes that are never all zero. Source: https://sqlite.org/fileformat2.html#walformat
"""

import os
from enum import Enum
from pathlib import Path
from typing import Final

_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24


class Fault(Enum):
    """What was done to the files."""

    DATABASE_GONE = "it was deleted or replaced"
    DATABASE_CUT = "it was truncated"
    LOG_GONE = "its log, the file that ends in -wal, was deleted or replaced"
    LOG_CUT = "its log, the file that ends in -wal, was truncated or overwritten"


class DatabaseFiles:
    """The database file and the log that SQLite has just opened; used by one thread.

    Raises `OSError` when there is no log: SQLite makes it with the first statement.
    """

    def __init__(self, path: Path, page_bytes: int) -> None:
        # SQLite follows symbolic links, and its log stands beside the file they lead to.
        self.database = path.resolve()
        self.log = _log_of(self.database)
        self._frame_bytes = _FRAME_HEADER_BYTES + page_bytes
        # A descriptor of our own still leads to the log when its name does not.
        self.descriptor = os.open(self.log, os.O_RDWR)
        self._database_identity, self._database_bytes = _seen(self.database)
        self._log_identity, self._log_bytes = _seen(self.log)
        self._header = os.pread(self.descriptor, _HEADER_BYTES, 0)

    def close(self) -> None:
        """Give the descriptor of the log back."""
        os.close(self.descriptor)

    def fault(self) -> Fault | None:
        """What was done to either file since it was seen last; takes two `stat` calls."""
        return self._look()[0]

    def fault_after_commit(self) -> Fault | None:
        """The same, and whether the log still has what stood in it before the commit.

        A log that was cut in between may be as long as it should be, with a gap of zeros in it. The
        gap is seen when it takes in a whole page of the log or its header.
        """
        fault, log_bytes = self._look()
        if fault is None and not self._has_what_it_had(log_bytes):
            return Fault.LOG_CUT
        return fault

    def log_is_whole(self) -> bool:
        """Whether the log that SQLite writes to has all it had, whatever its name leads to."""
        return self._has_what_it_had(os.fstat(self.descriptor).st_size)

    def _look(self) -> tuple[Fault | None, int]:
        """What is seen of the names alone, and how many bytes the log has."""
        identity, size = _seen(self.database)
        if identity != self._database_identity:
            return Fault.DATABASE_GONE, 0
        if size < self._database_bytes:
            return Fault.DATABASE_CUT, 0
        self._database_bytes = size
        identity, size = _seen(self.log)
        if identity != self._log_identity:
            return Fault.LOG_GONE, size
        if size < self._log_bytes:
            return Fault.LOG_CUT, size
        return None, size

    def _has_what_it_had(self, size: int) -> bool:
        """Whether the log of this size begins as before and continues what was there."""
        header = os.pread(self.descriptor, _HEADER_BYTES, 0)
        if size < self._log_bytes or (self._log_bytes and not _follows(self._header, header)):
            return False
        if size > self._log_bytes:
            if self._ends_in_a_gap(self._log_bytes):
                return False
            self._log_bytes = size
        self._header = header
        return True

    def _ends_in_a_gap(self, size: int) -> bool:
        """Whether the last page of a log that had this size is gone; a gap reads as zeros."""
        frames = (size - _HEADER_BYTES) // self._frame_bytes
        if frames < 1:
            return False
        last = _HEADER_BYTES + (frames - 1) * self._frame_bytes
        return not any(os.pread(self.descriptor, _FRAME_HEADER_BYTES, last))


def empty_beside_log(path: Path) -> bool:
    """Whether a file holds nothing, and the log of a database stands beside it.

    SQLite takes a file of one byte for empty too, makes a new database of it and deletes the log.
    """
    database = path.resolve()
    try:
        return database.stat().st_size <= 1 and _log_of(database).stat().st_size > 0
    except OSError:
        return False


def _log_of(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


def _seen(path: Path) -> tuple[tuple[int, int], int]:
    """Which file has this name, and how many bytes that has; zeros if none has it."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0), 0
    return (found.st_dev, found.st_ino), found.st_size


def _follows(before: bytes, after: bytes) -> bool:
    """Whether the header of a log is the one before, or that of the log begun anew."""
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
