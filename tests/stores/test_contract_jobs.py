"""Jobs in every store: due in order, given to one claimer only, and never lost."""

from datetime import datetime

import pytest

from sandbox_sim.ports import JobLost, Store, Unit
from sandbox_sim.records.jobs import Job, JobKind
from tests.sample_records import NOW, SERVICE, after, job, posting, postings_of
from tests.units import unit_of


async def add(store: Store, *jobs: Job) -> None:
    for each in jobs:
        await unit_of(store).add_job(each)


async def claim(store: Store, now: datetime = NOW, limit: int = 100) -> list[Job]:
    return list(await unit_of(store).claim_due(now, limit))


async def claim_subjects(store: Store, now: datetime = NOW, limit: int = 100) -> list[str]:
    return [each.subject for each in await claim(store, now, limit)]


async def test_the_earliest_due_comes_first_and_then_the_first_added(store: Store) -> None:
    await add(
        store,
        job("third", after(seconds=-1)),
        job("fourth", after(seconds=-1)),
        job("first", after(seconds=-3)),
        job("second", after(seconds=-2)),
        job("fifth", NOW),
    )

    assert await claim_subjects(store) == ["first", "second", "third", "fourth", "fifth"]


@pytest.mark.parametrize(
    ("seconds", "claimed"), [(-1, True), (0, True), (0.000001, False), (60, False)]
)
async def test_a_job_is_due_at_its_time_and_not_before(
    store: Store, seconds: float, claimed: bool
) -> None:
    await add(store, job("one", after(seconds=seconds)))

    assert (await claim_subjects(store) == ["one"]) is claimed


async def test_a_claimed_job_has_all_that_was_saved_and_a_number_of_its_own(store: Store) -> None:
    due = after(microseconds=-123456)
    await add(store, job("a", due), job("b", due, kind=JobKind.DELIVER, service_id=9))

    first, second = await claim(store)

    assert (first.due_at, first.kind, first.service_id, first.subject) == (
        due,
        JobKind.SETTLE,
        55,
        "a",
    )
    assert (second.due_at, second.kind, second.service_id) == (due, JobKind.DELIVER, 9)
    assert first.number != second.number


async def test_a_finished_job_is_gone_and_lost_to_whoever_finishes_it_again(store: Store) -> None:
    await add(store, job())
    (claimed,) = await claim(store)
    await unit_of(store).finish(claimed)

    with pytest.raises(JobLost):
        await unit_of(store).finish(claimed)

    assert await claim(store, after(days=1)) == []


async def test_a_job_that_was_forgotten_is_lost_to_whoever_works_on_it(store: Store) -> None:
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
async def test_finishing_it_twice_takes_no_newer_job_away(store: Store, subject: str) -> None:
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


async def test_next_jobs_are_the_unclaimed_ones_that_fall_due_first(store: Store) -> None:
    for seconds in (5, 1, 4, 2, 3, 9, 8, 7, 6, 0):
        await unit_of(store).add_job(job(f"in {seconds}", after(seconds=seconds)))
    await unit_of(store).claim_due(NOW, 10)

    found = await unit_of(store).next_jobs(4)
    every_one = await unit_of(store).next_jobs(100)

    assert [each.subject for each in found] == ["in 1", "in 2", "in 3", "in 4"]
    assert [each.due_at for each in every_one] == [after(seconds=s) for s in range(1, 10)]


async def test_jobs_after_are_the_unclaimed_ones_due_later(store: Store) -> None:
    await add(
        store,
        job("late", after(minutes=2), kind=JobKind.DELIVER),
        job("claimed", after(seconds=-1)),
        job("now", NOW),
        job("soon", after(minutes=1)),
    )
    await claim(store, after(seconds=-1))

    found = await unit_of(store).jobs_after(NOW)

    assert [each.subject for each in found] == ["soon", "late"]
    assert (found[1].kind, found[1].due_at) == (JobKind.DELIVER, after(minutes=2))


class TestWatching:
    """A scheduler that sleeps until the next job must be notified of an earlier one."""

    @pytest.fixture
    def noticed(self, store: Store) -> list[datetime]:
        noticed: list[datetime] = []
        store.watch_jobs(noticed.append)
        return noticed

    async def test_the_notice_comes_when_the_job_can_be_claimed(self, store: Store) -> None:
        seen: list[str] = []

        async def work(unit: Unit) -> None:
            await unit.add_job(job(due_at=after(minutes=1)))
            seen.append("added")

        store.watch_jobs(lambda due_at: seen.append(f"noticed {due_at:%H:%M}"))
        await store.run(work)

        # A store that polls as well may notify once more.
        assert seen[:2] == ["added", "noticed 09:01"]
        assert len(set(seen)) == 2

    async def test_of_several_jobs_the_earliest_is_told(
        self, store: Store, noticed: list[datetime]
    ) -> None:
        async def work(unit: Unit) -> None:
            for minutes in (3, 1, 2):
                await unit.add_job(job(due_at=after(minutes=minutes)))

        await store.run(work)

        assert min(noticed) == after(minutes=1)

    async def test_a_unit_that_raises_is_not_told(
        self, store: Store, noticed: list[datetime]
    ) -> None:
        async def work(unit: Unit) -> None:
            await unit.add_job(job())
            raise ValueError

        with pytest.raises(ValueError):  # noqa: PT011 -- it is ours
            await store.run(work)

        assert noticed == []

    async def test_units_without_a_new_job_tell_nothing(
        self, store: Store, noticed: list[datetime]
    ) -> None:
        await add(store, job())
        noticed.clear()
        (claimed,) = await claim(store)
        await unit_of(store).finish(claimed)

        assert noticed == []


@pytest.mark.decision("D39")
async def test_a_job_keeps_how_often_it_failed_and_is_listed_from_the_third_time(
    store: Store,
) -> None:
    await add(store, job("often", failures=3), job("twice", failures=2), job("more", failures=4))

    claimed = await claim(store, limit=1)

    assert [(each.subject, each.failures) for each in claimed] == [("often", 3)]
    listed = await unit_of(store).failed_jobs(9)
    assert [each.subject for each in listed] == ["often", "more"]
    assert len(await unit_of(store).failed_jobs(1)) == 1
