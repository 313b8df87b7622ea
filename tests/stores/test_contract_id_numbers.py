"""Numbers for ids: a store never reserves the same one twice, also after a reset or a snapshot."""

import pytest

from sandbox_sim.ports import Store, Unit
from tests.sample_records import NOW
from tests.units import unit_of

pytestmark = pytest.mark.decision("D18")


async def reserve(store: Store, first: int, count: int) -> int:
    return await unit_of(store).reserve(first, count)


async def test_they_begin_where_the_first_one_asks(store: Store) -> None:
    assert await reserve(store, 7 * 10**9, 10**6) == 7 * 10**9


async def test_they_go_on_from_there_whoever_asks(store: Store) -> None:
    begun = [await reserve(store, first, count) for first, count in ((70, 10), (5, 1), (70, 10))]

    assert begun == [70, 80, 81]


async def test_two_in_one_unit_differ(store: Store) -> None:
    async def work(unit: Unit) -> list[int]:
        return [await unit.reserve(1, 10), await unit.reserve(1, 10)]

    assert await store.run(work) == [1, 11]


async def test_a_unit_that_raises_reserves_none(store: Store) -> None:
    async def work(unit: Unit) -> None:
        await unit.reserve(70, 10)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await store.run(work)

    assert await reserve(store, 3, 10) == 3


async def test_neither_a_reset_nor_a_snapshot_gives_any_back(store: Store) -> None:
    await reserve(store, 1, 10)
    await unit_of(store).save_snapshot("before", None, NOW)
    await reserve(store, 1, 10)
    await unit_of(store).restore_snapshot("before", NOW)
    await unit_of(store).reset(None)

    assert await reserve(store, 1, 10) == 21
