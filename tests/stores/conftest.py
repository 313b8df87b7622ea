"""The stores that the contract tests run with. A new store is one more line in `STORES`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import Clock, Store
from sandbox_sim.records.jobs import Job
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from tests import postgres
from tests.sample_records import NOW
from tests.sqlite_files import IN_MEMORY, opened
from tests.turns import SOON_S
from tests.units import unit_of

if TYPE_CHECKING:
    from sandbox_sim.stores.postgres.postgres_store import PostgresStore


# With this lease a Postgres store has its first heartbeat and no other while a test lasts.
AN_HOUR = timedelta(hours=1)


class Broken(Exception):
    """Raised in a unit, so that the store rolls it back."""


OpenStore = Callable[..., AbstractAsyncContextManager[Store]]


@asynccontextmanager
async def _memory(clock: Clock, **options: Any) -> AsyncIterator[Store]:
    yield MemoryStore(clock, **options)


@asynccontextmanager
async def _sqlite(clock: Clock, **options: Any) -> AsyncIterator[Store]:
    with TemporaryDirectory(dir=IN_MEMORY) as folder:
        async with opened(Path(folder) / "state.sqlite3", clock, **options) as store:
            yield store


@asynccontextmanager
async def _postgres(clock: Clock, **options: Any) -> AsyncIterator[Store]:
    url = postgres.empty_database()  # skips or fails the test if there is no Postgres
    from sandbox_sim.stores.postgres.postgres_store import PostgresStore  # noqa: PLC0415

    store = PostgresStore(url, clock, lease=AN_HOUR, **options)
    await store.open()
    try:
        await first_beat(store)
        yield store
    finally:
        await store.close()


STORES: dict[str, OpenStore] = {"memory": _memory, "sqlite": _sqlite, "postgres": _postgres}


@pytest.fixture(scope="session", params=STORES)
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    """Opens an empty store of the kind under test."""
    return STORES[request.param]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def store(open_store: OpenStore, clock: VirtualClock) -> AsyncIterator[Store]:
    """An empty store of the kind under test, on a clock that only the test moves."""
    async with open_store(clock) as store:
        yield store


OpenPostgres = Callable[..., Awaitable["PostgresStore"]]


@pytest.fixture
def url() -> str:
    """An empty Postgres database."""
    return postgres.empty_database()


@pytest.fixture
async def open_postgres(
    url: str, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[OpenPostgres]:
    """Opens one more store on the same database, and closes it after the test.

    Returns the store after its first heartbeat.
    """
    from sandbox_sim.stores.postgres import postgres_connection, postgres_notifications  # noqa: PLC0415
    from sandbox_sim.stores.postgres.postgres_store import PostgresStore  # noqa: PLC0415

    monkeypatch.setattr(postgres_notifications, "_RECONNECT_S", 0.05)
    # On a busy machine a new connection takes longer than the five seconds of the store.
    monkeypatch.setattr(postgres_connection, "CONNECT_TIMEOUT_S", SOON_S)
    monkeypatch.setitem(postgres_connection._OPTIONS, "timeout", SOON_S)

    async with AsyncExitStack() as stack:

        async def opened(**options: Any) -> PostgresStore:
            defaults = {"url": url, "clock": clock, "lease": AN_HOUR}
            store = PostgresStore(**{**defaults, **options})
            stack.push_async_callback(store.close)
            await store.open()
            await first_beat(store)
            return store

        yield opened


@pytest.fixture
async def one(open_postgres: OpenPostgres) -> "PostgresStore":
    return await open_postgres()


@pytest.fixture
async def other(open_postgres: OpenPostgres) -> "PostgresStore":
    return await open_postgres()


async def first_beat(store: "PostgresStore") -> None:
    """Wait for the first heartbeat, so that a test does not mistake its effects for others."""
    await eventually(lambda: (task := store._clean_up.task) is not None and task.done())


async def cleaned_up(store: Store) -> None:
    """Let the store delete what it may; one in a database does so once a minute at most."""
    if not isinstance(store, MemoryStore):
        clean_up = cast("SqliteStore | PostgresStore", store)._clean_up
        for _ in range(2):  # one may run that began before the test moved the clock
            clean_up.start_if_due()
            assert clean_up.task is not None
            await clean_up.task


async def claim(store: Store, limit: int = 100, now: datetime = NOW) -> list[Job]:
    return list(await unit_of(store).claim_due(now, limit))


async def eventually(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Return as soon as the condition holds; raise `TimeoutError` after `SOON_S`."""
    async with asyncio.timeout(SOON_S):
        while True:
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.01)
