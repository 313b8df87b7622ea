"""Actions for tests of several servers that share one Postgres."""

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sandbox_sim.records.jobs import Job
from tests import postgres
from tests.stores.conftest import claim, eventually

if TYPE_CHECKING:
    from sandbox_sim.stores.postgres.postgres_store import PostgresStore


SHORT_LEASE: Final = timedelta(milliseconds=300)


async def taken_over(store: "PostgresStore") -> Job:
    """Wait until this store can claim the job, and return it."""
    found: list[Job] = []

    async def claimed() -> bool:
        found.extend(await claim(store))
        return bool(found)

    await eventually(claimed)
    return found[0]


async def end_listening(store: "PostgresStore", url: str) -> None:
    """Make Postgres end the session with which the store listens."""
    connection = store._channel._connection
    assert connection is not None
    await postgres.execute(url, f"SELECT pg_terminate_backend({connection.get_server_pid()})")
