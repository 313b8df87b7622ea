"""The scheduler: due jobs run in order, the clock stops at each due time, and no job is lost."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from sandbox_sim.control import scheduler
from sandbox_sim.control.scheduler import BATCH, JOBS_PER_TURN, MAX_STEPS, RETRY_DELAY
from sandbox_sim.ports import DataRefused, Unit
from sandbox_sim.records.callbacks import DeliveryState
from sandbox_sim.records.jobs import Job
from tests.conftest import Works
from tests.fakes import BROKEN
from tests.sample_records import NOW, after, callback, job
from tests.turns import turns
from tests.units import unit_of

A_MINUTE, FIVE_MINUTES = timedelta(minutes=1), timedelta(minutes=5)


async def test_due_jobs_run_in_batches_at_the_given_time(works: Works) -> None:
    await works.promise("late", due_at=after(minutes=-5))
    await works.promise(*map(str, range(BATCH)))
    await works.promise("later", due_at=after(seconds=2))

    ran = [len(await works.jobs.run_due(after(seconds=1))) for _ in range(3)]

    assert ran == [BATCH, 1, 0]
    assert works.tried[0] == ("late", after(seconds=1))
    assert await works.next_due() == after(seconds=2)


class TestFailingJob:
    """A job that raises is an error of the gateway, and may not affect other jobs."""

    async def test_a_failing_job_is_put_off_and_the_others_run_once(
        self, works: Works, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The log has the traceback; callbacks beside it leave once."""
        works.broken |= {"broken 1", "broken 2"}
        await works.notify(callback("C1"))
        await works.promise("broken 1", "a", "broken 2", "b")
        await works.notify(callback("C2"))

        await works.jobs.run_until_idle()
        assert await works.done() == ["a", "b"]
        assert len(works.sender.posts) == 2
        assert set((await works.states()).values()) == {DeliveryState.DELIVERED}
        last = [each for each in caplog.records if each.name == "sandbox_sim.jobs"][-1]
        assert last.levelno == logging.ERROR
        assert last.getMessage() == "settle broken 2 failed; it is put off"
        assert last.exc_info is not None

        works.broken.clear()
        await works.jobs.advance(A_MINUTE)
        assert sorted(await works.done()) == ["a", "b", "broken 1", "broken 2"]

    async def test_a_failing_job_is_put_off_each_time_and_listed_from_the_third_failure(
        self, works: Works
    ) -> None:
        works.broken.add("broken")
        await works.promise("broken")

        await works.jobs.advance(timedelta(minutes=5))
        assert await works.failed() == []
        await works.jobs.advance(timedelta(minutes=1))
        assert await works.failed() == [("broken", 3)]
        await works.jobs.advance(timedelta(days=1))

        tried = [NOW, after(minutes=1), after(minutes=6), after(days=1, minutes=6)]
        assert sorted({now for _, now in works.tried}) == tried
        assert await works.next_due() == after(days=2, minutes=6)

        works.broken.clear()
        await works.jobs.advance(timedelta(days=1))
        assert await works.failed() == []


async def test_settle_runs_all_due_jobs_and_waits_for_attempts_at_callbacks(works: Works) -> None:
    await works.promise(*map(str, range(2 * BATCH + 5)))
    await works.promise("later", due_at=after(seconds=1))
    await works.notify(callback("C1"))

    await works.jobs.run_until_idle()

    assert len(await works.done()) == 2 * BATCH + 5
    assert await works.states() == {"C1": DeliveryState.DELIVERED}
    assert works.clock.now() == NOW


class TestAdvance:
    async def test_an_advance_stops_at_every_due_time(self, works: Works) -> None:
        for minutes in (3, -1, 1, 2, 10):
            await works.promise(str(minutes), due_at=after(minutes=minutes))
        await works.promise("too late", due_at=after(minutes=10, microseconds=1))

        ran = await works.jobs.advance(timedelta(minutes=10))

        # An overdue job runs first, at the present time.
        assert works.tried == [(str(m), after(minutes=max(m, 0))) for m in (-1, 1, 2, 3, 10)]
        assert [job.subject for job in ran] == ["-1", "1", "2", "3", "10"]
        assert works.clock.now() == after(minutes=10)

    async def test_an_advance_returns_the_jobs_that_the_loop_ran_first(
        self, works: Works, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await works.promise("1", due_at=after(minutes=1))
        run_until_idle, jobs = works.jobs.run_until_idle, works.jobs

        async def settle_after_the_loop() -> None:
            await jobs.run_due(works.clock.now())
            await run_until_idle()

        monkeypatch.setattr(jobs, "run_until_idle", settle_after_the_loop)

        assert [job.subject for job in await jobs.advance(FIVE_MINUTES)] == ["1"]

    async def test_an_advance_runs_jobs_of_receivers_at_their_due_time(self, works: Works) -> None:
        """A shop may answer a callback with the next payment."""
        newer = iter(range(1, 6))

        async def next_payment(unit: Unit, _job: Job, now: datetime) -> None:
            if (number := next(newer, None)) is not None:
                await unit.add_job(job(f"newer {number}", now + timedelta(seconds=1)))

        works.meanwhile = next_payment
        await works.promise("first", due_at=after(seconds=1))

        await works.jobs.advance(timedelta(days=1))

        assert works.tried[1:] == [(f"newer {n}", after(seconds=n + 1)) for n in range(1, 6)]


class TestAdvanceUnderLoad:
    """New requests add jobs all the time; `advance` runs only some of them."""

    @pytest.fixture(autouse=True)
    def load(self, works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
        """For each job that runs, a newer request adds one that is due after `self.delay`."""
        monkeypatch.setattr(scheduler, "MAX_NEWER_FOLLOWED", 20)
        numbers = iter(range(5_000))

        async def request(unit: Unit, _job: Job, now: datetime) -> None:
            number = next(numbers)  # raises if the clock follows them
            await unit.add_job(job(f"newer {number}", now + self.delay))

        self.delay = timedelta(seconds=1)
        works.meanwhile = request

    @pytest.mark.parametrize("delay_s", [1, 0])
    async def test_an_advance_arrives_and_runs_the_earlier_jobs_at_their_due_time(
        self, works: Works, delay_s: int
    ) -> None:
        self.delay = timedelta(seconds=delay_s)
        await works.promise("early", due_at=after(seconds=1))
        await works.promise("late", due_at=after(days=1))

        ran = await works.jobs.advance(timedelta(days=1))

        assert works.clock.now() == after(days=1)
        assert works.tried[0] == ("early", after(seconds=1))
        assert ("late", after(days=1)) in works.tried
        assert len(ran) == len(works.tried) < 400

    async def test_an_advance_by_zero_ends(self, works: Works) -> None:
        self.delay = timedelta()
        await works.promise("first", "second")

        await works.jobs.advance(timedelta())

        assert {"first", "second"} <= set(await works.done())
        assert works.clock.now() == NOW
        assert len(works.tried) < 400

    async def test_an_advance_runs_the_retries_that_it_plans(self, works: Works) -> None:
        works.sender.answers = [BROKEN, BROKEN]
        await works.promise("first", due_at=after(seconds=1))
        await works.notify(callback("C1"))

        await works.jobs.advance(timedelta(hours=1))

        attempts = (await works.callback()).attempts
        assert len(attempts) == 3
        late = [later.at - earlier.at - FIVE_MINUTES for earlier, later in pairwise(attempts)]
        assert all(timedelta() <= each <= timedelta(hours=1) / MAX_STEPS for each in late)
        assert len(works.tried) < 400

    async def test_an_advance_does_not_wait_for_the_receivers_of_newer_requests(
        self, works: Works, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(scheduler, "MAX_NEWER_FOLLOWED", 0)
        hanging = callback("newer", url="http://hanging.example/", network_transaction_id="2" * 11)

        async def request(unit: Unit, _job: Job, now: datetime) -> None:
            works.meanwhile = None
            await unit.save_callback(hanging)
            await unit.add_job(hanging.delivery_job(now))

        works.meanwhile = request
        works.sender.hang("http://hanging.example/")
        await works.promise("first", due_at=after(seconds=1))
        await works.notify(callback("C1"))

        await works.jobs.advance(FIVE_MINUTES)

        assert works.clock.now() == after(minutes=5)
        assert await works.states() == {
            "C1": DeliveryState.DELIVERED,
            "newer": DeliveryState.PENDING,
        }


class TestLoop:
    @pytest.fixture
    async def loop(self, works: Works) -> AsyncIterator[asyncio.Task[None]]:
        loop = asyncio.create_task(works.jobs.run_forever())
        yield loop
        loop.cancel()
        await asyncio.wait([loop])

    @pytest.fixture(autouse=True)
    async def _asleep(self, works: Works, loop: asyncio.Task[None]) -> None:
        assert not loop.done()
        await works.clock.asleep()

    async def test_the_scheduler_runs_few_jobs_in_one_turn_of_the_loop(self, works: Works) -> None:
        """Answers to requests are written in between."""
        await works.promise(*map(str, range(3 * JOBS_PER_TURN)))

        ran = [0]
        while ran[-1] < 3 * JOBS_PER_TURN:
            await asyncio.sleep(0)
            ran.append(len(works.tried))

        assert {after - before for before, after in pairwise(ran)} <= {0, JOBS_PER_TURN}

    async def test_the_scheduler_sleeps_until_a_job_is_added_or_due(self, works: Works) -> None:
        assert works.clock.waits == [None]
        await works.promise("now")
        await works.promise("later", due_at=after(minutes=1))
        await works.clock.asleep()
        assert await works.done() == ["now"]
        assert works.clock.waits[-1] == after(minutes=1)

        works.clock.move_to(after(minutes=1))
        await works.clock.asleep()

        assert await works.done() == ["now", "later"]

    async def test_only_an_earlier_job_wakes_the_scheduler(self, works: Works) -> None:
        for minutes in (5, 9, 2, 7):
            await works.promise(str(minutes), due_at=after(minutes=minutes))
            await works.clock.asleep()

        assert works.clock.waits == [None, after(minutes=5), after(minutes=2)]

    async def test_failing_jobs_and_invalid_addresses_do_not_end_the_scheduler(
        self, works: Works, loop: asyncio.Task[None]
    ) -> None:
        """One such callback_url may not stop all settlements after it."""
        works.broken.add("broken")
        await works.promise("broken", "fine")
        await works.notify(callback(url="http://[:::]/"))
        await works.clock.asleep()
        await turns()

        assert await works.done() == ["fine"]
        assert not loop.done()

    async def test_a_store_that_is_away_gets_a_line_without_a_traceback(
        self, works: Works, loop: asyncio.Task[None], caplog: pytest.LogCaptureFixture
    ) -> None:
        """The scheduler tries again after a second of real time; no job caused the error."""
        works.store.failures = 3
        await unit_of(works.store._store).add_job(job("fine"))
        await works.clock.asleep()

        (record,) = caplog.records
        assert not record.exc_info
        assert record.getMessage() == "the jobs wait for the store: the disk is full"
        assert await works.done() == ["fine"]
        assert not loop.done()


async def test_a_job_that_the_store_refuses_does_not_stop_the_others(works: Works) -> None:
    works.refused.add("bad")
    await works.promise("a", "bad", "b")

    await works.jobs.run_until_idle()

    assert await works.done() == ["a", "b"]
    assert await works.next_due() == NOW + RETRY_DELAY

    # A value that the store refuses does not mean that the store is away.
    works.refused.clear()
    works.broken.add("bad")
    works.error = DataRefused("it cannot hold one of the values")
    await works.jobs.advance(RETRY_DELAY)
    assert await works.next_due() == NOW + RETRY_DELAY + A_MINUTE


async def test_settle_runs_the_jobs_added_by_a_running_attempt(works: Works) -> None:
    go_on = asyncio.Event()

    async def cause() -> None:
        await go_on.wait()
        await works.promise("caused")

    works.sender.on_post = cause
    await works.notify(callback())
    await works.start()

    settling = asyncio.create_task(works.jobs.run_until_idle())
    await turns()
    go_on.set()

    await settling

    assert await works.done() == ["caused"]
