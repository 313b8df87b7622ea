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

SEED = 7

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
        self.ids = RandomIds(SEED)
        self.id_allocation = IdAllocation(store, self.clock, self.ids)

    def given(self, count: int = AT_ONCE // 2) -> list[str]:
        return [self.ids.network_transaction_id() for _ in range(count)]


async def test_servers_with_one_seed_give_other_ids_on_one_store_and_the_same_on_another(
    store: FailingStore,
) -> None:
    other_store = FailingStore(MemoryStore(WatchedClock()))
    servers = [Server(each) for each in (store, store, store, other_store)]
    given = []
    for server in servers:
        await server.id_allocation.reserve()
        given.append([*server.given(AT_ONCE), server.ids.record_id(), server.ids.request_id()])

    first, *_, same = given
    assert len({name for names in given[:3] for name in names}) == 3 * (AT_ONCE + 2)
    assert same == first


async def test_more_are_reserved_while_they_are_given(store: FailingStore) -> None:
    server = Server(store)
    await server.id_allocation.reserve()
    loop = asyncio.create_task(server.id_allocation.run_forever())

    given: list[str] = []
    for _ in range(10):
        given += server.given(AT_ONCE // 2 + 1)
        await turns()
    loop.cancel()

    assert len(set(given)) == 10 * (AT_ONCE // 2 + 1)


async def test_a_store_that_is_away_is_asked_again(
    store: FailingStore, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(store)
    await server.id_allocation.reserve()
    store.failures = 2
    given = server.given(AT_ONCE)
    loop = asyncio.create_task(server.id_allocation.run_forever())

    await turns()
    given += server.given()
    loop.cancel()

    assert len(set(given)) == AT_ONCE + AT_ONCE // 2
    said = "no more ids could be reserved, trying again: the disk is full"
    assert caplog.messages == [said, said]
