"""The journal of every store keeps entries as they were written, separately for each service."""

from operator import methodcaller

import pytest

from sandbox_sim.adapters.stores.memory import memory_store
from sandbox_sim.adapters.stores.sql import journal
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.gateway.ports import Store
from tests.records import SERVICE, entry

NOBODYS = entry(
    "R2",
    service_id=None,
    operation=None,
    transaction_id=None,
    request="é \u2028 🙂".encode(),
    warnings=(),
)


async def ids(store: Store, service_id: int | None = None) -> list[str]:
    found = await store.run(lambda unit: unit.list_entries(Listing(service_id, None, 100)))
    return [each.id for each in found]


async def test_an_entry_is_read_as_it_was_written(store: Store) -> None:
    await store.run(lambda unit: unit.add_entries([entry(), NOBODYS]))

    found = await store.run(lambda unit: unit.list_entries(Listing()))

    assert list(found) == [NOBODYS, entry()]
    assert await ids(store, SERVICE) == ["R1"]


async def test_any_character_may_have_been_sent(store: Store) -> None:
    odd = entry(request=b"\x00\xff", path="/\udcff\x00", why="\x00", transaction_id="\x00")

    await store.run(lambda unit: unit.add_entries([odd]))

    (found,) = await store.run(lambda unit: unit.list_entries(Listing()))
    assert (found.id, found.answer) == (odd.id, odd.answer)


async def test_clearing_one_service_leaves_the_others(store: Store) -> None:
    others = [entry("R3", service_id=56), entry("R4")]
    await store.run(lambda unit: unit.add_entries([entry(), NOBODYS, *others]))

    assert await store.run(lambda unit: unit.clear_entries(SERVICE)) == 2
    assert await ids(store) == ["R3", "R2"]
    assert await store.run(lambda unit: unit.clear_entries(None)) == 2
    assert await ids(store) == []


async def test_nothing_was_dropped_where_there_is_room(store: Store) -> None:
    await store.run(lambda unit: unit.add_entries([entry(), NOBODYS]))

    assert await store.run(lambda unit: unit.dropped_entries(None)) == 0
    assert await store.run(lambda unit: unit.dropped_entries(SERVICE)) == 0


async def test_the_newest_of_each_service_are_kept_and_what_went_is_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (memory_store, journal):
        monkeypatch.setattr(module, "KEPT_REQUESTS", 3)
    for service_id in (SERVICE, 56):
        entries = [entry(f"R{service_id}-{n}", service_id=service_id) for n in range(5)]
        await store.run(methodcaller("add_entries", entries))

    assert await ids(store, SERVICE) == ["R55-4", "R55-3", "R55-2"]
    assert await store.run(lambda unit: unit.dropped_entries(SERVICE)) == 2
    assert await store.run(lambda unit: unit.dropped_entries(None)) == 4
