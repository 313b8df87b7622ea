"""A unit of work that raises leaves nothing behind, in every store and for every kind of write."""

from typing import Any

import pytest

from sandbox_sim.ports import Store, Unit
from sandbox_sim.records.jobs import Job
from tests.sample_records import NOW, SERVICE, after, job
from tests.stores.writes import WRITES, Write, prepared, state
from tests.units import unit_of


class Broken(Exception):
    """The error that these units raise."""


async def broken(store: Store, write: Write) -> None:
    async def work(unit: Unit) -> None:
        await write(unit)
        raise Broken

    with pytest.raises(Broken):
        await store.run(work)


async def test_what_can_be_read_and_the_order_of_jobs_are_as_before(store: Store) -> None:
    await store.run(prepared)
    before = await store.run(state)
    claimed: list[list[str]] = []

    async def claim(unit: Unit) -> None:
        claimed.append([each.subject for each in await unit.claim_due(NOW, 10)])

    for name, write in WRITES.items():
        await broken(store, write)

        assert await store.run(state) == before, name
        await broken(store, claim)
        assert claimed.pop() == ["due", "due too"], name


async def test_the_same_write_works_the_next_time(store: Store) -> None:
    """The failed write leaves nothing that makes the second one fail."""
    first: list[dict[str, Any]] = []
    for name, write in WRITES.items():

        async def read_after(unit: Unit, write: Write = write) -> dict[str, Any]:
            await write(unit)
            return await state(unit)

        async def read_then_break(unit: Unit) -> None:
            first.append(await read_after(unit))

        await store.run(prepared)
        await broken(store, read_then_break)

        assert await store.run(read_after) == first.pop(), name
        await store.run(start_anew)


async def start_anew(unit: Unit) -> None:
    """Delete everything except the clock."""
    await unit.reset(None)
    for snapshot in await unit.snapshots():
        await unit.delete_snapshot(snapshot.name)


async def test_a_job_finished_in_a_broken_unit_is_still_claimed_and_its_retry_not_there(
    store: Store,
) -> None:
    """A unit that records an attempt finishes its job and adds the next one, or does neither."""
    await unit_of(store).add_job(job())
    (claimed,) = await unit_of(store).claim_due(NOW, 1)

    async def record(unit: Unit) -> None:
        await unit.finish(claimed)
        await unit.add_job(Job(after(minutes=5), claimed.kind, SERVICE, claimed.subject))

    await broken(store, record)
    assert await unit_of(store).next_due() is None
    assert await unit_of(store).claim_due(NOW, 1) == []

    await store.run(record)
    assert await unit_of(store).next_due() == after(minutes=5)
