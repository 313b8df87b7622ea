"""A reset deletes all records of a service and none of another, in every store."""

from functools import partial

import pytest

from sandbox_sim.ports import Store
from sandbox_sim.ports.clock import ClockState
from sandbox_sim.records.listing import Listing
from tests.sample_records import NOW, SERVICE, after
from tests.stores.conftest import claim
from tests.stores.two_services import OTHER, both_live, of
from tests.units import unit_of

# A service that never had a record.
EMPTY = 57


@pytest.fixture(autouse=True)
async def _lived(store: Store) -> None:
    await store.run(both_live)


async def test_one_service_is_forgotten_and_the_other_as_it_was(store: Store) -> None:
    theirs = await store.run(lambda unit: of(unit, OTHER))

    await unit_of(store).reset(SERVICE)

    nothing = await store.run(lambda unit: of(unit, EMPTY))
    assert await store.run(lambda unit: of(unit, SERVICE)) == nothing
    assert await store.run(lambda unit: of(unit, OTHER)) == theirs
    assert len(await unit_of(store).inbox_messages("orders", Listing())) == 1
    assert [each.service_id for each in await claim(store, now=after(hours=1))] == [OTHER] * 2


async def test_all_is_forgotten_inboxes_too(store: Store) -> None:
    await unit_of(store).reset(None)

    nothing = await store.run(lambda unit: of(unit, EMPTY))
    for service_id in (SERVICE, OTHER):
        assert await store.run(partial(of, service_id=service_id)) == nothing
    assert await unit_of(store).inbox_messages("orders", Listing()) == []
    assert await claim(store, now=after(hours=1)) == []


async def test_the_clock_is_left_as_it_is(store: Store) -> None:
    state = ClockState(frozen_at=NOW)
    await unit_of(store).save_clock(state)

    await unit_of(store).reset(None)

    assert await unit_of(store).clock() == state
