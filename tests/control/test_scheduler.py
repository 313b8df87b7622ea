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


async def test_due_jobs_are_run_in_batches_for_the_time_that_is_given(works: Works) -> None:
    await works.promise("late", due_at=after(minutes=-5))
    await works.promise(*map(str, range(BATCH)))
    await works.promise("later", due_at=after(seconds=2))

    ran = [len(await works.jobs.run_due(after(seconds=1))) for _ in range(3)]

    assert ran == [BATCH, 1, 0]
    assert works.tried[0] == ("late", after(seconds=1))
    assert await works.next_due() == after(seconds=2)


class TestAFailingJob:
    """A job that raises is an error of the gateway, and may not affect other jobs."""

    async def test_the_others_are_done_once_and_it_is_put_off_and_not_lost(
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

    async def test_it_is_put_off_as_often_as_it_fails_and_seen_from_the_third_time(
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


async def test_to_settle_runs_all_that_is_due_and_waits_for_the_attempts_at_callbacks(
    works: Works,
) -> None:
    await works.promise(*map(str, range(2 * BATCH + 5)))
    await works.promise("later", due_at=after(seconds=1))
    await works.notify(callback("C1"))

    await works.jobs.run_until_idle()

    assert len(await works.done()) == 2 * BATCH + 5
    assert await works.states() == {"C1": DeliveryState.DELIVERED}
    assert works.clock.now() == NOW


class TestAdvance:
    async def test_the_clock_stops_at_every_due_time_on_the_way(self, works: Works) -> None:
        for minutes in (3, -1, 1, 2, 10):
            await works.promise(str(minutes), due_at=after(minutes=minutes))
        await works.promise("too late", due_at=after(minutes=10, microseconds=1))

        ran = await works.jobs.advance(timedelta(minutes=10))

        # What was overdue runs first, and at the time it is.
        assert works.tried == [(str(m), after(minutes=max(m, 0))) for m in (-1, 1, 2, 3, 10)]
        assert [job.subject for job in ran] == ["-1", "1", "2", "3", "10"]
        assert works.clock.now() == after(minutes=10)

    async def test_what_the_loop_is_quicker_to_run_is_told_too(
        self, works: Works, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await works.promise("1", due_at=after(minutes=1))
        run_until_idle, jobs = works.jobs.run_until_idle, works.jobs

        async def settle_after_the_loop() -> None:
            await jobs.run_due(works.clock.now())
            await run_until_idle()

        monkeypatch.setattr(jobs, "run_until_idle", settle_after_the_loop)

        assert [job.subject for job in await jobs.advance(FIVE_MINUTES)] == ["1"]

    async def test_what_a_receiver_causes_on_the_way_is_done_at_its_time(
        self, works: Works
    ) -> None:
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
    """New requests add jobs all the while; `advance` works towards its time, not after them."""

    @pytest.fixture(autouse=True)
    def load(self, works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
        """For each job that runs, a newer request adds one that is due after `self.delay`."""
        monkeypatch.setattr(scheduler, "MAX_NEWER_FOLLOWED", 20)
        numbers = iter(range(5_000))

        async def request(unit: Unit, _job: Job, now: datetime) -> None:
            number = next(numbers)  # raises where the clock runs after them
            await unit.add_job(job(f"newer {number}", now + self.delay))

        self.delay = timedelta(seconds=1)
        works.meanwhile = request

    @pytest.mark.parametrize("delay_s", [1, 0])
    async def test_it_arrives_and_runs_what_was_there_at_its_time(
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

    async def test_it_ends_where_the_clock_does_not_move(self, works: Works) -> None:
        self.delay = timedelta()
        await works.promise("first", "second")

        await works.jobs.advance(timedelta())

        assert {"first", "second"} <= set(await works.done())
        assert works.clock.now() == NOW
        assert len(works.tried) < 400

    async def test_retries_that_are_planned_on_the_way_run_too(self, works: Works) -> None:
        works.sender.answers = [BROKEN, BROKEN]
        await works.promise("first", due_at=after(seconds=1))
        await works.notify(callback("C1"))

        await works.jobs.advance(timedelta(hours=1))

        attempts = (await works.callback()).attempts
        assert len(attempts) == 3
        late = [later.at - earlier.at - FIVE_MINUTES for earlier, later in pairwise(attempts)]
        assert all(timedelta() <= each <= timedelta(hours=1) / MAX_STEPS for each in late)
        assert len(works.tried) < 400

    async def test_it_does_not_wait_for_the_receivers_of_newer_requests(
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


class TestTheLoop:
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

    async def test_it_runs_few_jobs_in_one_turn_of_the_loop(self, works: Works) -> None:
        """Answers to requests are written in between."""
        await works.promise(*map(str, range(3 * JOBS_PER_TURN)))

        ran = [0]
        while ran[-1] < 3 * JOBS_PER_TURN:
            await asyncio.sleep(0)
            ran.append(len(works.tried))

        assert {after - before for before, after in pairwise(ran)} <= {0, JOBS_PER_TURN}

    async def test_it_sleeps_until_a_job_is_added_and_until_the_next_is_due(
        self, works: Works
    ) -> None:
        assert works.clock.waits == [None]
        await works.promise("now")
        await works.promise("later", due_at=after(minutes=1))
        await works.clock.asleep()
        assert await works.done() == ["now"]
        assert works.clock.waits[-1] == after(minutes=1)

        works.clock.move_to(after(minutes=1))
        await works.clock.asleep()

        assert await works.done() == ["now", "later"]

    async def test_an_earlier_job_wakes_it_and_a_later_one_does_not(self, works: Works) -> None:
        for minutes in (5, 9, 2, 7):
            await works.promise(str(minutes), due_at=after(minutes=minutes))
            await works.clock.asleep()

        assert works.clock.waits == [None, after(minutes=5), after(minutes=2)]

    async def test_neither_a_failing_job_nor_an_address_that_cannot_be_parsed_ends_it(
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

    async def test_a_store_that_is_away_is_a_line_and_no_traceback(
        self, works: Works, loop: asyncio.Task[None], caplog: pytest.LogCaptureFixture
    ) -> None:
        """The scheduler asks it again after a second of real time; no job caused the error."""
        works.store.failures = 3
        await unit_of(works.store._store).add_job(job("fine"))
        await works.clock.asleep()

        (record,) = caplog.records
        assert not record.exc_info
        assert record.getMessage() == "the jobs wait for the store: the disk is full"
        assert await works.done() == ["fine"]
        assert not loop.done()


async def test_a_store_that_fails_with_one_job_goes_on_with_the_others(works: Works) -> None:
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


async def test_to_settle_is_to_run_what_an_attempt_under_way_causes_too(works: Works) -> None:
    """`run_until_idle` waits for the attempt that has begun, and runs the job that it adds."""
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
