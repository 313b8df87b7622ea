"""Our tables in a Postgres database: a schema of their own, made and brought up to date.

Beside what both databases have there is the table `gateway`, with one row: the version of the
tables, and how many blocks of network transaction ids were given out.
"""

from typing import Final

from sandbox_sim.adapters.stores import schema
from sandbox_sim.adapters.stores.postgres_connection import SCHEMA, Borrowed
from sandbox_sim.gateway.ports import StoreError

_SERIAL: Final = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
# Replicas that start at the same time make the tables one after another; "sbox".
_LOCK: Final = f"SELECT pg_advisory_xact_lock({0x73626F78})"
_TABLES: Final = (
    "SELECT count(*), count(*) FILTER (WHERE tablename = 'gateway') "
    "FROM pg_catalog.pg_tables WHERE schemaname = $1"
)
_FOUNDATION: Final = """
CREATE TABLE gateway (
    version INTEGER NOT NULL,
    network_blocks BIGINT NOT NULL
);
INSERT INTO gateway VALUES (0, 0);
"""


async def migrate(connection: Borrowed) -> None:
    """Bring the tables to the newest version, all the way or not at all.

    `StoreError` says why it cannot be, where it is not Postgres that says so.
    """
    async with connection.transaction():
        await connection.execute(_LOCK)
        if await connection.fetchval("SHOW server_encoding") != "UTF8":
            raise StoreError("its encoding is not UTF8; make the database with ENCODING 'UTF8'")
        if not await connection.fetchval("SELECT 1 FROM pg_namespace WHERE nspname = $1", SCHEMA):
            await connection.execute(f"CREATE SCHEMA {SCHEMA}")
        ((tables, ours),) = await connection.fetch(_TABLES, SCHEMA)
        if tables and not ours:
            raise StoreError(f"its schema {SCHEMA} belongs to another program")
        if not tables:
            await connection.execute(_FOUNDATION)
        version = await connection.fetchval("SELECT version FROM gateway")
        newest = len(schema.MIGRATIONS)
        if version > newest:
            raise StoreError(
                f"it has version {version} and this sandbox_sim knows up to {newest}; "
                "install a newer sandbox_sim or choose another database"
            )
        for number in range(version + 1, newest + 1):
            await connection.execute(schema.script(number, serial=_SERIAL))
        await connection.execute(f"UPDATE gateway SET version = {newest}")
