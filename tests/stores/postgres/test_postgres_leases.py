"""Leases in Postgres: a live server keeps its jobs, and others take over those of a dead one."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

from sandbox_sim.callbacks.delivery_queue import ProcessAnswerGate
from sandbox_sim.ports import JobLost, Unit
from sandbox_sim.records.jobs import Job
from tests import postgres
from tests.sample_records import SERVICE, after, job, posting, postings_of
from tests.stores.conftest import OpenPostgres, claim, eventually
from tests.stores.postgres.postgres_servers import SHORT_LEASE, taken_over
from tests.units import unit_of

if TYPE_CHECKING:
    from sandbox_sim.stores.postgres.postgres_store import PostgresStore

OTHER = 56


async def stop_heartbeat(store: "PostgresStore") -> None:
    """Stop the heartbeat of the store, which can still run units of work."""
    task = store._channel._task
    assert task is not None
    task.cancel()
    await asyncio.wait({task})


async def die(store: "PostgresStore") -> None:
    """End the store as a kill does: it gives no job back, and all connections close."""
    await stop_heartbeat(store)
    pool, connection = store._pool, store._channel._connection
    assert pool is not None
    assert connection is not None
    pool.terminate()
    connection.terminate()
    store._pool = None


async def leases(url: str) -> list[int]:
    return [
        row[0] for row in await postgres.execute(url, "SELECT lease_until FROM sandbox_sim.jobs")
    ]


async def test_a_server_takes_over_the_jobs_of_a_dead_server(open_postgres: OpenPostgres) -> None:
    holder, other = await open_postgres(lease=SHORT_LEASE), await open_postgres(lease=SHORT_LEASE)
    await unit_of(holder).add_job(job("orphan", failures=2))
    (lost,) = await claim(holder)
    assert await claim(other) == []

    await die(holder)

    found = await taken_over(other)
    assert found._replace(number=0) == lost._replace(number=0)
    await unit_of(other).finish(found)


async def test_a_live_server_extends_its_leases(open_postgres: OpenPostgres, url: str) -> None:
    holder, other = await open_postgres(lease=SHORT_LEASE), await open_postgres(lease=SHORT_LEASE)
    await unit_of(holder).add_job(job())
    (held,) = await claim(holder)
    seen: set[int] = set()

    async def extended_twice() -> bool:
        seen.update(await leases(url))
        return len(seen) > 2

    await eventually(extended_twice)

    assert 0 not in seen
    assert await claim(other) == []
    await unit_of(holder).finish(held)
    assert await leases(url) == []


async def test_a_server_cannot_finish_a_job_taken_by_another(open_postgres: OpenPostgres) -> None:
    holder, other = await open_postgres(lease=SHORT_LEASE), await open_postgres(lease=SHORT_LEASE)
    await unit_of(holder).add_job(job())
    (held,) = await claim(holder)

    async def record(unit: Unit, done: Job, subject: str) -> None:
        await unit.add_transfer(posting("1", subject=subject))
        await unit.finish(done)

    await stop_heartbeat(holder)
    found = await taken_over(other)
    with pytest.raises(JobLost):
        await holder.run(partial(record, done=held, subject="too late"))
    await other.run(partial(record, done=found, subject="in time"))

    postings = await holder.run(lambda unit: postings_of(unit, SERVICE))
    assert [each.subject for each in postings] == ["in time"]


async def test_a_new_server_frees_no_jobs_at_its_first_heartbeat(
    open_postgres: OpenPostgres, url: str
) -> None:
    """A new server waits, so that each other server can extend its lease first.

    After a restart of Postgres all leases have run out.
    """
    holder = await open_postgres(lease=SHORT_LEASE)
    await unit_of(holder).add_job(job())
    (held,) = await claim(holder)
    await stop_heartbeat(holder)
    await postgres.execute(url, "UPDATE sandbox_sim.jobs SET lease_until = 1")

    other = await open_postgres()  # returns after its first heartbeat

    assert await claim(other) == []
    await unit_of(holder).finish(held)


async def test_a_stopping_server_returns_its_claimed_jobs_and_notifies_the_others(
    open_postgres: OpenPostgres,
) -> None:
    leaving, staying = await open_postgres(), await open_postgres()
    noticed: list[object] = []
    staying.watch_jobs(noticed.append)
    await unit_of(leaving).add_job(job("done"))
    await unit_of(leaving).add_job(job("not yet", after(seconds=-1)))
    first, second = await claim(leaving)
    await unit_of(leaving).finish(second)
    noticed.clear()

    await leaving.close()

    assert [each.subject for each in await claim(staying)] == [first.subject]
    await eventually(lambda: after(seconds=-1) in noticed)


@pytest.mark.decision("D16")
class TestJobHeldForAnAnswer:
    """With `settle_delay_ms` 0 another server could send the callback before the answer."""

    @pytest.fixture
    def gate(self) -> ProcessAnswerGate:
        gate = ProcessAnswerGate()
        gate.hold("10000000001")
        return gate

    async def test_a_job_due_at_once_cannot_be_claimed_until_the_answer_is_written(
        self, open_postgres: OpenPostgres, gate: ProcessAnswerGate
    ) -> None:
        answering, other = await open_postgres(gate=gate), await open_postgres()
        noticed: list[object] = []
        answering.watch_jobs(noticed.append)
        await unit_of(answering).add_job(job("10000000001"))

        assert await claim(other) == await claim(answering) == []
        assert noticed == []

        gate.release("10000000001")

        assert (await taken_over(other)).subject == "10000000001"
        assert noticed == [job().due_at]

    async def test_a_job_due_later_or_with_a_written_answer_can_be_claimed(
        self, open_postgres: OpenPostgres, gate: ProcessAnswerGate
    ) -> None:
        answering, other = await open_postgres(gate=gate), await open_postgres()
        await unit_of(answering).add_job(job("10000000001", after(seconds=1)))
        assert len(await claim(other, now=after(seconds=1))) == 1

        async def work(unit: Unit) -> None:
            await unit.add_job(job("10000000001"))
            gate.release("10000000001")

        await answering.run(work)

        assert (await taken_over(other)).subject == "10000000001"

    async def test_a_server_takes_over_the_held_job_of_a_dead_server(
        self, open_postgres: OpenPostgres, gate: ProcessAnswerGate
    ) -> None:
        answering = await open_postgres(gate=gate, lease=SHORT_LEASE)
        other = await open_postgres(lease=SHORT_LEASE)
        await unit_of(answering).add_job(job("10000000001"))

        await die(answering)

        assert (await taken_over(other)).subject == "10000000001"


async def test_a_server_drops_its_claims_of_jobs_that_a_reset_deleted(
    open_postgres: OpenPostgres,
) -> None:
    holder = await open_postgres(lease=SHORT_LEASE)
    await unit_of(holder).add_job(job("deleted"))
    await unit_of(holder).add_job(job("kept", service_id=OTHER))
    _, kept = await claim(holder)

    await unit_of(holder).reset(SERVICE)

    await eventually(lambda: holder._channel.claims == {kept.number})
    await unit_of(holder).finish(kept)
