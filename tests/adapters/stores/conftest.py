"""The stores that the contract is held against. A new store is one more line in `STORES`."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.adapters.stores.memory import MemoryStore
from sandbox_sim.adapters.stores.sqlite import SqliteStore
from sandbox_sim.gateway.ports import Clock, Store

OpenStore = Callable[[Clock], AbstractAsyncContextManager[Store]]


@asynccontextmanager
async def _memory(clock: Clock) -> AsyncIterator[Store]:
    yield MemoryStore(clock)


@asynccontextmanager
async def _sqlite(clock: Clock) -> AsyncIterator[Store]:
    with TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "state.sqlite3", clock)
        await store.open()
        yield store
        await store.close()


STORES: dict[str, OpenStore] = {
    "memory": _memory,
    "sqlite": _sqlite,
}


@pytest.fixture(scope="session", params=STORES)
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    """Opens an empty store of the kind under test."""
    return STORES[request.param]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def store(open_store: OpenStore, clock: VirtualClock) -> AsyncIterator[Store]:
    """An empty store of the kind under test, on a clock that stands still."""
    async with open_store(clock) as store:
        yield store
