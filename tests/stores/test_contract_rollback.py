"""A unit of work that raises changes nothing, in every store and for every kind of write."""

from typing import Any

import pytest

from sandbox_sim.ports import Store, Unit
from sandbox_sim.records.jobs import Job
from tests.sample_records import NOW, SERVICE, after, job
from tests.stores.conftest import Broken
from tests.stores.writes import WRITES, Write, prepared, state
from tests.units import unit_of


async def run_and_fail(store: Store, write: Write) -> None:
    async def work(unit: Unit) -> None:
        await write(unit)
        raise Broken

    with pytest.raises(Broken):
        await store.run(work)


async def test_a_failed_write_changes_no_record_and_no_order_of_jobs(store: Store) -> None:
    await store.run(prepared)
    before = await store.run(state)
    claimed: list[list[str]] = []

    async def claim(unit: Unit) -> None:
        claimed.append([each.subject for each in await unit.claim_due(NOW, 10)])

    for name, write in WRITES.items():
        await run_and_fail(store, write)

        assert await store.run(state) == before, name
        await run_and_fail(store, claim)
        assert claimed.pop() == ["due", "due too"], name


async def test_a_failed_write_succeeds_when_repeated(store: Store) -> None:
    first: list[dict[str, Any]] = []
    for name, write in WRITES.items():

        async def read_after(unit: Unit, write: Write = write) -> dict[str, Any]:
            await write(unit)
            return await state(unit)

        async def read_then_break(unit: Unit) -> None:
            first.append(await read_after(unit))

        await store.run(prepared)
        await run_and_fail(store, read_then_break)

        assert await store.run(read_after) == first.pop(), name
        await store.run(delete_all)


async def delete_all(unit: Unit) -> None:
    """Delete everything except the clock."""
    await unit.reset(None)
    for snapshot in await unit.snapshots():
        await unit.delete_snapshot(snapshot.name)


async def test_a_failed_unit_keeps_the_claim_of_its_job_and_adds_no_retry(store: Store) -> None:
    """A unit that records an attempt finishes its job and adds the next one, or does neither."""
    await unit_of(store).add_job(job())
    (claimed,) = await unit_of(store).claim_due(NOW, 1)

    async def record(unit: Unit) -> None:
        await unit.finish(claimed)
        await unit.add_job(Job(after(minutes=5), claimed.kind, SERVICE, claimed.subject))

    await run_and_fail(store, record)
    assert await unit_of(store).next_due() is None
    assert await unit_of(store).claim_due(NOW, 1) == []

    await store.run(record)
    assert await unit_of(store).next_due() == after(minutes=5)
