"""Refuses to work on files that were touched, and saves what stands in their log alone."""

import logging
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from sandbox_sim.adapters.stores.sqlite.file_watch import DatabaseFiles, Fault
from sandbox_sim.gateway.ports import StoreError

log = logging.getLogger("sandbox_sim.store")


class WatchedFiles:
    """The files of a connection; once something was done to them, every check fails.

    Raises `OSError` when there is no log yet.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        self._connection = connection
        self._files = DatabaseFiles(path, page_bytes)
        self._fault: Fault | None = None
        self._saved = False

    def check(self) -> None:
        """Check before a transaction; `StoreError` says what was done to the files."""
        if self._fault is None:
            self._fault = self._files.fault()
            self._at_first_fault()
        self._refuse()

    def check_after_commit(self) -> None:
        """Check before a commit is acknowledged; `StoreError` likewise."""
        if self._fault is None:
            self._fault = self._files.fault_after_commit()
            self._at_first_fault()
        self._refuse()

    def disconnect(self) -> None:
        """Close connection and files; SQLite copies the log to the database file and deletes it."""
        if self._fault is not None and not self._saved:
            # There may be room by now for a whole log. A damaged one is not tried twice.
            whole = self._fault is Fault.LOG_GONE and self._files.log_is_whole()
            if not (whole and _save(self._connection, self._files)):
                # SQLite would copy a log that is damaged, or to a file that is. An interrupted
                # connection copies and deletes nothing when it is closed.
                self._connection.interrupt()
        self._connection.close()
        self._files.close()

    def _at_first_fault(self) -> None:
        match self._fault:
            case None:
                return
            case Fault.LOG_GONE | Fault.LOG_CUT:
                self._saved = _save(self._connection, self._files)
            case Fault.DATABASE_GONE:
                # The next start would read it as the log of the file that has the name now.
                _put_log_aside(self._files)
        log.error("%s: %s", self._files.database, self._words(self._fault))

    def _refuse(self) -> None:
        if self._fault is not None:
            raise StoreError(self._words(self._fault))

    def _words(self, fault: Fault) -> str:
        match fault:
            case Fault.DATABASE_GONE:
                return f"{fault.value}, so start the server again"
            case Fault.DATABASE_CUT:
                return f"{fault.value}, so stop the server and restore a copy of the file"
        saved = "everything" if self._saved else "not everything"
        return f"{fault.value}; {saved} that was acknowledged is saved; start the server again"


def _save(connection: sqlite3.Connection, files: DatabaseFiles) -> bool:
    """Bring all that was committed into the database file; returns whether it is there.

    The connection must be in no transaction, and must write nothing after this.
    """
    try:
        if files.log_is_whole():
            _copy_log(connection, files)
        else:
            _write_anew(connection, files)
    except (OSError, sqlite3.Error) as error:
        # No traceback: the file system said why.
        log.error("%s: what its log held is not saved: %s", files.database, error)  # noqa: TRY400
        return False
    return True


def _copy_log(connection: sqlite3.Connection, files: DatabaseFiles) -> None:
    """Only its name was taken from the log: SQLite still reads it by its descriptor."""
    busy, frames, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if busy or frames != copied:
        raise sqlite3.OperationalError("not all of the log could be copied")
    # What has the name now would be read as the log of the database at the next start.
    _put_log_aside(files)


def _write_anew(connection: sqlite3.Connection, files: DatabaseFiles) -> None:
    """The log is damaged, but SQLite keeps pages in memory: write all pages into a new file.

    The log is emptied first. A page that is neither in memory nor in the database file is then an
    error, where a damaged log would give wrong bytes for it; and in case of an error the log is
    put back, because its first part may be readable at the next start.
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
    # First the log: beside the new file it would be read as its own.
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
