"""The connections to Postgres, descriptions of their errors, and our tables there.

Beside the tables that both databases have, the table `gateway` has one row with the schema version.
"""

import asyncio
from typing import Any, Final, TypeAlias

import asyncpg

from sandbox_sim.ports import Clock, StoreError
from sandbox_sim.stores.sql import schema

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


# The schema of our tables, which keeps them apart from those of other programs.
SCHEMA: Final = "sandbox_sim"

# The application_name of the sessions that listen to other servers.
LISTENER_NAME: Final = f"{SCHEMA} line"

# Errors when Postgres is unavailable, restarts, does not answer, or rejects a statement.
POSTGRES_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)

# Errors of a value that the encoding or a type does not have, or that is too long for an index.
DATA_ERRORS: Final = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)

# How many units of work one process runs at once. The others wait in the process, not in Postgres.
CONNECTIONS: Final = 10

# Seconds to wait for a connection, and for each statement.
CONNECT_TIMEOUT_S: Final = 5.0

STATEMENT_TIMEOUT_S: Final = 10.0

_OPTIONS: Final[dict[str, Any]] = {
    "timeout": CONNECT_TIMEOUT_S,
    "command_timeout": STATEMENT_TIMEOUT_S,
    "max_cached_statement_lifetime": 0,
    "server_settings": {
        "application_name": SCHEMA,
        "search_path": SCHEMA,
        # Each statement sees what was committed before it, even if the database has another
        # default.
        "default_transaction_isolation": "read committed",
        # The locks of a server that hangs or disappears do not last long.
        "idle_in_transaction_session_timeout": "15000",
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "3",
    },
}


async def connect(url: str) -> Connection:
    """A connection outside the pool; raises one of `POSTGRES_ERRORS`.

    Its time limits are shorter than a lease, so it can fail and be opened again before the lease
    ends.
    """
    session = {**_OPTIONS["server_settings"], "application_name": LISTENER_NAME}
    options = {"command_timeout": CONNECT_TIMEOUT_S, "server_settings": session}
    return await asyncpg.connect(url, **{**_OPTIONS, **options})


class PostgresConnections:
    """The connections for units of work, opened when they are needed.

    Units get them in the order in which they ask. asyncpg's pool gives one that becomes free to a
    unit that asks just then, though others wait, and starts a task and two timers for each unit.
    The keepalives of the server keep an idle connection open.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._slots = asyncio.Semaphore(CONNECTIONS)
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._is_closed = False

    @property
    def all_taken(self) -> bool:
        """Whether a unit that asks for a connection has to wait."""
        return self._slots.locked()

    async def acquire(self) -> Connection:
        """An open connection, to be released; raises one of `POSTGRES_ERRORS`, or `StoreError`."""
        if self._idle and not self.all_taken:
            return await self._acquire()
        async with self._clock.timeout(CONNECT_TIMEOUT_S):
            return await self._acquire()

    async def _acquire(self) -> Connection:
        await self._slots.acquire()
        try:
            return self._pop_idle() or await self._open_new()
        except BaseException:
            self._slots.release()
            raise

    def _pop_idle(self) -> "Connection | None":
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
            self._open.remove(connection)
        return None

    async def _open_new(self) -> Connection:
        if self._is_closed:
            raise StoreError("the store is closed")
        connection: Connection = await asyncpg.connect(self._url, **_OPTIONS)
        self._open.add(connection)
        return connection

    def release(self, connection: Connection) -> None:
        """Take a connection back, open or not."""
        self._idle.append(connection)
        self._slots.release()

    async def close(self) -> None:
        """Wait until all are released, and close them; if this is cancelled, close them at once."""
        self._is_closed = True
        try:
            for _ in range(CONNECTIONS):
                await self._slots.acquire()
            for connection in self._idle:
                await connection.close()
        finally:
            self.terminate()

    def terminate(self) -> None:
        """Close all at once, also the connections that units use."""
        for connection in self._open:
            connection.terminate()


async def open_connections(url: str, clock: Clock) -> PostgresConnections:
    """The connections; one is opened to check that it works.

    Raises one of `POSTGRES_ERRORS`, or `StoreError` for an invalid address.
    """
    connections = PostgresConnections(url, clock)
    try:
        connections.release(await connections.acquire())
    except POSTGRES_ERRORS:
        raise
    except (ValueError, OverflowError):
        example = "postgresql://user:password@host:5432/database"
        raise StoreError(f"it is not a valid address {example}") from None
    return connections


def describe_error(error: Exception) -> str:
    """The problem in words that end a sentence, without any value of a record."""
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, DATA_ERRORS):
        return "it cannot hold one of the values"
    if isinstance(error, OSError):
        return f"it cannot be reached: {error.strerror or error}"
    if isinstance(error, asyncpg.InternalClientError):
        return "the connection to it broke off"
    return str(error).partition("\n")[0] or type(error).__name__


# Servers that start at the same time take this lock, so that they create the tables one after
# another; "sbox".
_MIGRATION_LOCK: Final = f"SELECT pg_advisory_xact_lock({0x73626F78})"

# The encoding of the database, whether our schema is there, and whether it has our tables and our
# function. A query of the catalogue would take longer than all the rest where there is nothing to
# migrate.
_SCHEMA_STATE: Final = f"""
SELECT current_setting('server_encoding'),
    to_regnamespace('{SCHEMA}') IS NOT NULL, to_regclass('{SCHEMA}.gateway') IS NOT NULL,
    to_regprocedure('{SCHEMA}.lock_if_unused(bigint, bigint, text)') IS NOT NULL
"""

_HAS_TABLES: Final = "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = $1)"

_CREATE_GATEWAY: Final = """
CREATE TABLE gateway (
    version INTEGER NOT NULL
);
INSERT INTO gateway VALUES (0);
"""

# Every unit shares this lock, so the exclusive lock gives one unit the whole state; "sbsn".
STATE_LOCK: Final = 0x7362736E

# Takes the lock of a `transaction_id` and returns whether no transaction of mode S has this id.
# Parameters: the number of the lock, the service, the id. A query in a function sees what was
# committed while the function waited for the lock; the query that calls it does not.
_CREATE_FUNCTION: Final = f"""
CREATE FUNCTION {SCHEMA}.lock_if_unused(bigint, bigint, text) RETURNS boolean LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({STATE_LOCK});
    PERFORM pg_advisory_xact_lock($1);
    RETURN NOT EXISTS (
        SELECT FROM {SCHEMA}.transactions
        WHERE service_id = $2 AND transaction_id = $3 AND mode = 'S'
    );
END $$
"""


async def migrate(connection: Connection) -> None:
    """Migrate the tables to the newest version, completely or not at all.

    Raises `StoreError` that says why not, or an error of Postgres.
    """
    async with connection.transaction():
        await connection.execute(_MIGRATION_LOCK)
        ((encoding, has_schema, is_ours, has_function),) = await connection.fetch(_SCHEMA_STATE)
        if encoding != "UTF8":
            raise StoreError("its encoding is not UTF8; make the database with ENCODING 'UTF8'")
        if not has_schema:
            await connection.execute(f"CREATE SCHEMA {SCHEMA}")
        if not is_ours:
            if await connection.fetchval(_HAS_TABLES, SCHEMA):
                raise StoreError(f"its schema {SCHEMA} belongs to another program")
            await connection.execute(_CREATE_GATEWAY)
        version = await connection.fetchval(f"SELECT version FROM {SCHEMA}.gateway")
        newest = schema.newest_version(version, "database")
        if version < newest:
            await connection.execute(schema.script(version, schema.POSTGRES))
            await connection.execute(f"UPDATE gateway SET version = {newest}")
        if not has_function:
            await connection.execute(_CREATE_FUNCTION)
