"""What tests of servers that share one Postgres do to them."""

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sandbox_sim.domain.jobs import Job
from tests import postgres
from tests.adapters.stores.conftest import claim, eventually

if TYPE_CHECKING:  # asyncpg may be missing
    from sandbox_sim.adapters.stores.postgres.postgres_store import PostgresStore

SHORT_LEASE: Final = timedelta(milliseconds=300)


async def taken_over(store: "PostgresStore") -> Job:
    """The one job, as soon as this store can claim it."""
    found: list[Job] = []

    async def claimed() -> bool:
        found.extend(await claim(store))
        return bool(found)

    await eventually(claimed)
    return found[0]


async def end_listening(store: "PostgresStore", url: str) -> None:
    """Postgres ends the session that listens."""
    connection = store._channel._connection
    assert connection is not None
    await postgres.execute(url, f"SELECT pg_terminate_backend({connection.get_server_pid()})")
