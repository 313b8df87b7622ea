"""Jobs in every store: claimed in order, each by one server, and never lost."""

from datetime import datetime

import pytest

from sandbox_sim.ports import JobLost, Store, Unit
from sandbox_sim.records.jobs import Job, JobKind
from tests.sample_records import NOW, SERVICE, after, job, posting, postings_of
from tests.stores.conftest import claim
from tests.units import unit_of


async def add(store: Store, *jobs: Job) -> None:
    for each in jobs:
        await unit_of(store).add_job(each)


async def claim_subjects(store: Store, now: datetime = NOW) -> list[str]:
    return [each.subject for each in await claim(store, now=now)]


async def test_due_jobs_are_claimed_by_due_time_and_then_in_the_order_added(store: Store) -> None:
    due = {"third": -1, "fourth": -1, "first": -3, "second": -2, "fifth": 0}
    early = {"too early": 0.000001, "later": 60}
    await add(store, *(job(name, after(seconds=at)) for name, at in {**early, **due}.items()))

    assert await claim_subjects(store) == ["first", "second", "third", "fourth", "fifth"]


async def test_a_claimed_job_has_every_saved_field_and_its_own_number(store: Store) -> None:
    due = after(microseconds=-123456)
    saved = [job("a", due), job("b", due, kind=JobKind.DELIVER, service_id=9)]
    await add(store, *saved)

    claimed = await claim(store)

    assert [each._replace(number=0) for each in claimed] == saved
    assert claimed[0].number != claimed[1].number


async def test_a_job_that_a_reset_deleted_cannot_be_finished(store: Store) -> None:
    """Otherwise a callback that is being sent would leave a record of a service that was reset."""
    await add(store, job())
    (claimed,) = await claim(store)
    await unit_of(store).reset(None)

    async def record(unit: Unit) -> None:
        await unit.add_transfer(posting())
        await unit.finish(claimed)

    with pytest.raises(JobLost):
        await store.run(record)

    assert await store.run(lambda unit: postings_of(unit, SERVICE)) == []


@pytest.mark.parametrize("subject", ["another", "one"])
async def test_a_finished_job_cannot_be_finished_again(store: Store, subject: str) -> None:
    """A number may be used again, and the next attempt at a callback has the same subject."""
    await add(store, job("one"))
    (claimed,) = await claim(store)

    async def try_again_later(unit: Unit) -> None:
        await unit.finish(claimed)
        await unit.add_job(job(subject, after(minutes=5)))

    await store.run(try_again_later)
    with pytest.raises(JobLost):
        await unit_of(store).finish(claimed)

    assert await claim_subjects(store, after(minutes=5)) == [subject]


async def test_next_jobs_and_jobs_after_list_unclaimed_jobs_by_due_time(store: Store) -> None:
    for seconds in (5, 1, 4, 2, 3, 9, 8, 7, 6, 0):
        await add(store, job(f"in {seconds}", after(seconds=seconds), kind=JobKind.DELIVER))
    await claim(store)

    first = await unit_of(store).next_jobs(4)
    every_one = await unit_of(store).next_jobs(100)
    later = await unit_of(store).jobs_after(after(seconds=7))

    assert [each.subject for each in first] == ["in 1", "in 2", "in 3", "in 4"]
    assert [each.due_at for each in every_one] == [after(seconds=s) for s in range(1, 10)]
    assert [(each.subject, each.kind, each.due_at) for each in later] == [
        (f"in {seconds}", JobKind.DELIVER, after(seconds=seconds)) for seconds in (8, 9)
    ]


class TestWatching:
    """A scheduler that sleeps until the next job must be notified of an earlier one."""

    async def test_a_watcher_is_notified_when_the_job_can_be_claimed(self, store: Store) -> None:
        seen: list[str] = []

        async def work(unit: Unit) -> None:
            await unit.add_job(job(due_at=after(minutes=1)))
            seen.append("added")

        store.watch_jobs(lambda due_at: seen.append(f"noticed {due_at:%H:%M}"))
        await store.run(work)

        # A store that polls as well may notify once more.
        assert seen[:2] == ["added", "noticed 09:01"]
        assert len(set(seen)) == 2

    async def test_a_watcher_gets_the_earliest_due_time_of_a_unit_that_adds_jobs(
        self, store: Store
    ) -> None:
        noticed: list[datetime] = []
        await add(store, job())
        store.watch_jobs(noticed.append)

        async def fails(unit: Unit) -> None:
            await unit.add_job(job())
            raise ValueError

        async def adds(unit: Unit) -> None:
            for minutes in (3, 1, 2):
                await unit.add_job(job(due_at=after(minutes=minutes)))

        (claimed,) = await claim(store)
        await unit_of(store).finish(claimed)
        with pytest.raises(ValueError):  # noqa: PT011 -- it is ours
            await store.run(fails)
        assert noticed == []

        await store.run(adds)
        assert min(noticed) == after(minutes=1)


class TestBringForward:
    """The unit makes planned attempts at callbacks due earlier."""

    async def test_only_the_named_deliveries_become_due(self, store: Store) -> None:
        deliver, soon = JobKind.DELIVER, after(minutes=5)
        await add(store, job("claimed", kind=deliver))
        (claimed,) = await claim(store)
        await add(
            store,
            job("C1", soon, kind=deliver),
            job("not named", soon, kind=deliver),
            job("C3", soon, kind=JobKind.DELIVER_LIVE),
            job("of another kind", soon, kind=JobKind.RELEASE),
            job("due already", after(seconds=-2), kind=deliver),
        )

        named = ["C3", "due already", "C1", "of another kind", "claimed", "unknown"]
        found = await unit_of(store).bring_forward(named, NOW)

        assert sorted(found) == ["C1", "C3", "due already"]
        assert await claim_subjects(store) == ["due already", "C1", "C3"]
        assert await claim_subjects(store, soon) == ["not named", "of another kind"]
        await unit_of(store).finish(claimed)
        for unchanged in ([], ["unknown", "claimed"]):
            assert list(await unit_of(store).bring_forward(unchanged, NOW)) == []

    async def test_a_watcher_of_jobs_is_notified(self, store: Store) -> None:
        await add(store, job("C1", after(minutes=5), kind=JobKind.DELIVER))
        noticed: list[datetime] = []
        store.watch_jobs(noticed.append)

        await unit_of(store).bring_forward(["C1"], NOW)

        assert min(noticed) == NOW


@pytest.mark.decision("D39")
async def test_a_job_keeps_its_failures_and_is_listed_from_the_third_failure(store: Store) -> None:
    await add(store, job("often", failures=3), job("twice", failures=2), job("more", failures=4))

    claimed = await claim(store, limit=1)

    assert [(each.subject, each.failures) for each in claimed] == [("often", 3)]
    listed = await unit_of(store).failed_jobs(9)
    assert [each.subject for each in listed] == ["often", "more"]
    assert len(await unit_of(store).failed_jobs(1)) == 1
