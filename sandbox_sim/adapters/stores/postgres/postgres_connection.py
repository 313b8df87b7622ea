"""How we connect to Postgres, and what goes wrong there in words."""

from typing import Any, Final, TypeAlias

import asyncpg

from sandbox_sim.gateway.ports import StoreError

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Borrowed: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"

# Where our tables are, so that they meet nobody else's.
SCHEMA: Final = "sandbox_sim"
# What the sessions are called that hear of the other servers.
LINE_NAME: Final = f"{SCHEMA} line"
# What is raised when Postgres is away, restarts, does not answer, or cannot do what we ask.
BROKEN: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)
# How many units of work one process does at once. The rest wait in it, not in Postgres.
CONNECTIONS: Final = 10
# Seconds to wait for a connection, and then for each statement.
PATIENCE_S: Final = 5.0
STATEMENT_S: Final = 10.0
_OPTIONS: Final[dict[str, Any]] = {
    "timeout": PATIENCE_S,
    "command_timeout": STATEMENT_S,
    "max_cached_statement_lifetime": 0,
    "server_settings": {
        "application_name": SCHEMA,
        "search_path": SCHEMA,
        # Each statement sees what was committed before it; whatever the database is set to.
        "default_transaction_isolation": "read committed",
        # A server that stands still, or is gone without a word, does not keep its locks for long.
        "idle_in_transaction_session_timeout": "15000",
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "3",
    },
}


async def connect(url: str) -> Connection:
    """A connection of our own; raises one of `BROKEN`.

    To wait, give up and connect again takes less time than a lease lasts.
    """
    session = {**_OPTIONS["server_settings"], "application_name": LINE_NAME}
    options = {"command_timeout": PATIENCE_S, "server_settings": session}
    return await asyncpg.connect(url, **{**_OPTIONS, **options})


async def open_pool(url: str) -> Pool:
    """The connections that units of work take turns on, one of them made to see that it works.

    Raises one of `BROKEN`, or `StoreError` for what is no address.
    """
    pool = await asyncpg.create_pool(
        url, min_size=0, max_size=CONNECTIONS, reset=_nothing_to_reset, **_OPTIONS
    )
    try:
        await pool.release(await pool.acquire())
    except BROKEN:
        raise
    except (ValueError, OverflowError):
        example = "postgresql://user:password@host:5432/database"
        raise StoreError(f"it is no address such as {example}") from None
    return pool


async def _nothing_to_reset(_connection: Connection) -> None:
    """Units of work leave nothing in a session, so giving it back costs no statement."""


def in_words(error: Exception) -> str:
    """What went wrong, as half a sentence that repeats no value."""
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, asyncpg.DataError):
        return "it cannot hold one of the values"
    if isinstance(error, OSError):
        return f"it cannot be reached: {error.strerror or error}"
    return str(error).partition("\n")[0] or type(error).__name__
