"""Stops work on database files that were tampered with, and saves what only their log has."""

import logging
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from sandbox_sim.adapters.stores.sqlite.file_watch import DatabaseFiles, FileFault
from sandbox_sim.gateway.ports import StoreError

log = logging.getLogger("sandbox_sim.store")


class WatchedFiles:
    """The files of a connection; after the first fault every check raises.

    Raises `OSError` when there is no log yet.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        self._connection = connection
        self._files = DatabaseFiles(path, page_bytes)
        self._fault: FileFault | None = None
        self._saved = False

    def check(self) -> None:
        """Check the files before a transaction; raises `StoreError` that says what happened."""
        if self._fault is None:
            self._fault = self._files.fault()
            self._rescue()
        self._raise_if_faulty()

    def check_after_commit(self) -> None:
        """Check the files before a commit is acknowledged; raises `StoreError` likewise."""
        if self._fault is None:
            self._fault = self._files.fault_after_commit()
            self._rescue()
        self._raise_if_faulty()

    def disconnect(self) -> None:
        """Close the connection and the files.

        SQLite copies the log to the database file and deletes it, unless the log or the file is
        damaged.
        """
        if self._fault is not None and not self._saved:
            # The disk may have room for a whole log by now. A damaged log is not tried twice.
            whole = self._fault is FileFault.LOG_GONE and self._files.log_is_whole()
            if not (whole and _save(self._connection, self._files)):
                # SQLite would copy a damaged log, or copy it to a damaged file. A connection that
                # is interrupted copies and deletes nothing when it is closed.
                self._connection.interrupt()
        self._connection.close()
        self._files.close()

    def _rescue(self) -> None:
        match self._fault:
            case None:
                return
            case FileFault.LOG_GONE | FileFault.LOG_CUT:
                self._saved = _save(self._connection, self._files)
            case FileFault.DATABASE_GONE:
                # The next start would take it for the log of the file that has the name now.
                _put_log_aside(self._files)
        log.error("%s: %s", self._files.database, self._describe(self._fault))

    def _raise_if_faulty(self) -> None:
        if self._fault is not None:
            raise StoreError(self._describe(self._fault))

    def _describe(self, fault: FileFault) -> str:
        match fault:
            case FileFault.DATABASE_GONE:
                return f"{fault.value}, so start the server again"
            case FileFault.DATABASE_CUT:
                return f"{fault.value}, so stop the server and restore a copy of the file"
        saved = "everything" if self._saved else "not everything"
        return f"{fault.value}; {saved} that was acknowledged is saved; start the server again"


def _save(connection: sqlite3.Connection, files: DatabaseFiles) -> bool:
    """Write all committed changes to the database file; returns whether that succeeded.

    The connection must be in no transaction, and must write nothing afterwards.
    """
    try:
        if files.log_is_whole():
            _copy_log(connection, files)
        else:
            _write_anew(connection, files)
    except (OSError, sqlite3.Error) as error:
        # No traceback: the error of the file system says why.
        log.error("%s: the changes in its log are not saved: %s", files.database, error)  # noqa: TRY400
        return False
    return True


def _copy_log(connection: sqlite3.Connection, files: DatabaseFiles) -> None:
    """Copy a log that lost only its name: SQLite still reads it through its descriptor."""
    busy, frames, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if busy or frames != copied:
        raise sqlite3.OperationalError("not all of the log could be copied")
    # The next start would take a file of this name for the log of the database.
    _put_log_aside(files)


def _write_anew(connection: sqlite3.Connection, files: DatabaseFiles) -> None:
    """Write all pages to a new file, because the log is damaged and SQLite has pages in memory.

    The log is emptied first. A page that is neither in memory nor in the database file is then an
    error, where a damaged log would give wrong bytes for it. After an error the log is put back,
    because its first part may be readable at the next start.
    """
    damaged, anew = Path(f"{files.log}.damaged"), Path(f"{files.database}.anew")
    os.lseek(files.descriptor, 0, os.SEEK_SET)
    with os.fdopen(os.dup(files.descriptor), "rb") as source, damaged.open("wb") as target:
        shutil.copyfileobj(source, target)
    try:
        os.ftruncate(files.descriptor, 0)
        _back_up(connection, anew)
        shutil.copymode(files.database, anew)
    except BaseException:
        damaged.replace(files.log)
        anew.unlink(missing_ok=True)
        raise
    # The log goes first: beside the new file SQLite would take it for its log.
    files.log.unlink(missing_ok=True)
    anew.replace(files.database)
    damaged.unlink()


def _back_up(connection: sqlite3.Connection, path: Path) -> None:
    with closing(sqlite3.connect(path)) as copy:
        connection.backup(copy)
        (verdict,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)


def _put_log_aside(files: DatabaseFiles) -> None:
    with suppress(FileNotFoundError):
        files.log.replace(f"{files.log}.aside")
