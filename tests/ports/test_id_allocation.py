"""Each server on a store makes its ids from numbers that no other server has."""

import asyncio

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds
from sandbox_sim.ports import ids as id_allocation
from sandbox_sim.ports.ids import IdAllocation
from sandbox_sim.stores.memory.memory_store import MemoryStore
from tests.fakes import FailingStore, WatchedClock
from tests.turns import turns

pytestmark = pytest.mark.decision("D18")

AT_ONCE = 10


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_allocation, "RESERVED_AT_ONCE", AT_ONCE)


@pytest.fixture
def store() -> FailingStore:
    return FailingStore(MemoryStore(WatchedClock()))


class Server:
    """One of the servers on a store; all have the same seed."""

    def __init__(self, store: FailingStore) -> None:
        self.clock = WatchedClock()
        self.ids = RandomIds(seed=7)
        self.id_allocation = IdAllocation(store, self.clock, self.ids)

    def made(self, count: int = AT_ONCE // 2) -> list[str]:
        return [self.ids.network_transaction_id() for _ in range(count)]


async def test_servers_with_one_seed_make_different_ids_on_one_store_and_equal_on_two(
    store: FailingStore,
) -> None:
    other_store = FailingStore(MemoryStore(WatchedClock()))
    servers = [Server(each) for each in (store, store, store, other_store)]
    made = []
    for server in servers:
        await server.id_allocation.reserve()
        made.append([*server.made(AT_ONCE), server.ids.record_id(), server.ids.request_id()])

    first, *_, same = made
    assert len({name for names in made[:3] for name in names}) == 3 * (AT_ONCE + 2)
    assert same == first


async def test_more_numbers_are_reserved_while_ids_are_made(store: FailingStore) -> None:
    server = Server(store)
    await server.id_allocation.reserve()
    loop = asyncio.create_task(server.id_allocation.run_forever())

    made: list[str] = []
    for _ in range(10):
        made += server.made(AT_ONCE // 2 + 1)
        await turns()
    loop.cancel()

    assert len(set(made)) == 10 * (AT_ONCE // 2 + 1)


async def test_a_reservation_is_repeated_while_the_store_is_away(
    store: FailingStore, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(store)
    await server.id_allocation.reserve()
    store.failures = 2
    made = server.made(AT_ONCE)
    loop = asyncio.create_task(server.id_allocation.run_forever())

    await turns()
    made += server.made()
    loop.cancel()

    assert len(set(made)) == AT_ONCE + AT_ONCE // 2
    said = "no more ids could be reserved, trying again: the disk is full"
    assert caplog.messages == [said, said]
