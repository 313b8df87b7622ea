"""Background jobs: when a failing job is tried again, listed and given up (D39)."""

import asyncio
from datetime import datetime, timedelta

import pytest

from sandbox_sim.ports import STORE_PAUSE_S, DataRefused, JobLost, Store, StoreError, Unit
from sandbox_sim.production.background_jobs import BackgroundJobs, GiveUp
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.stores.memory.memory_store import MemoryStore
from tests.fakes import FailingStore, WatchedClock
from tests.sample_records import NOW, SERVICE, after
from tests.turns import idle, turns
from tests.units import unit_of

pytestmark = pytest.mark.decision("D39")


class Working:
    """Background jobs whose work raises the errors of a test in turn, and then ends its job."""

    def __init__(self, *errors: Exception, give_up: GiveUp | None = None) -> None:
        self.clock = WatchedClock()
        self.store: Store = MemoryStore(self.clock)
        self.tried: list[datetime] = []
        self._errors = list(errors)
        self._give_up = give_up

    async def run_until(self, end: datetime) -> None:
        """Add a job, once, and run it whenever it is due until then, each time in a new process."""
        if not self.tried:
            first = Job(NOW, JobKind.ASK_NETWORK, SERVICE, "A1")
            await unit_of(self.store).add_job(first)
        while (due := await unit_of(self.store).next_due()) and due <= end:
            self.clock.move_to(max(due, self.clock.now()))
            (job,) = await unit_of(self.store).claim_due(self.clock.now(), 1)
            jobs = BackgroundJobs(self.store, self.clock, self._work, self._give_up)
            jobs.start(job)
            await idle(jobs)

    async def _work(self, job: Job) -> None:
        self.tried.append(self.clock.now())
        if self._errors:
            raise self._errors.pop(0)
        await unit_of(self.store).finish(job)

    async def listed(self) -> list[int]:
        return [each.failures for each in await unit_of(self.store).failed_jobs(9)]


REFUSED = DataRefused("it cannot hold one of the values")


@pytest.mark.parametrize("error", [ValueError("a bug of ours"), REFUSED], ids=["bug", "data"])
async def test_a_failing_job_is_tried_on_the_schedule_and_listed_after_three_failures(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    working = Working(*[error] * 4)

    await working.run_until(after(minutes=10))
    assert working.tried == [NOW, after(minutes=1), after(minutes=6)]
    assert await working.listed() == [3]
    assert caplog.messages.count("ask-network A1 failed") == 3
    assert [each for each in caplog.messages if each.endswith("listed")] == [
        "ask-network A1 failed 3 times and is listed"
    ]

    await working.run_until(after(days=1, minutes=7))
    assert await working.listed() == [4]


async def test_a_listed_job_that_succeeds_is_no_longer_listed() -> None:
    working = Working(*[ValueError("a bug of ours")] * 3)

    await working.run_until(after(days=2))

    assert working.tried[-1] == after(days=1, minutes=6)
    assert await working.listed() == []


async def test_a_job_waits_for_an_unavailable_store_without_counting_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    working = Working(*[StoreError("the disk is full")] * 5)

    await working.run_until(after(minutes=1))

    assert len(working.tried) == 6
    assert working.clock.pauses == [STORE_PAUSE_S] * 5
    assert caplog.messages == ["ask-network A1 waits for the store: the disk is full"] * 5
    assert await working.listed() == []


async def test_a_failed_job_is_put_off_when_the_store_is_back() -> None:
    clock = WatchedClock()
    store = FailingStore(MemoryStore(clock))

    async def work(_job: Job) -> None:
        store.failures = 2
        raise ValueError("a bug of ours")

    await unit_of(store).add_job(Job(NOW, JobKind.ASK_NETWORK, SERVICE, "A1"))
    (job,) = await unit_of(store).claim_due(NOW, 1)
    jobs = BackgroundJobs(store, clock, work)
    jobs.start(job)
    await idle(jobs)

    assert await unit_of(store).next_due() == after(minutes=1)
    assert clock.pauses == [STORE_PAUSE_S] * 2


async def test_a_job_that_another_server_has_claimed_is_not_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    working = Working(JobLost("its claim has ended"))

    await working.run_until(after(minutes=10))

    assert working.tried == [NOW]
    assert caplog.messages == ["ask-network A1 is not recorded: its claim has ended"]


async def test_close_cancels_the_running_jobs() -> None:
    began, may_end, ended = asyncio.Event(), asyncio.Event(), []

    async def work(job: Job) -> None:
        began.set()
        await may_end.wait()
        ended.append(job)

    jobs = BackgroundJobs(MemoryStore(WatchedClock()), WatchedClock(), work)
    jobs.start(Job(NOW, JobKind.ASK_NETWORK, SERVICE, "A1"))
    await began.wait()
    closing = asyncio.create_task(jobs.close())
    await turns()
    may_end.set()
    await closing

    assert ended == []


async def test_a_job_that_is_given_up_is_noted_once_and_ends() -> None:
    noted: list[tuple[str, str]] = []

    async def give_up(unit: Unit, job: Job, problem: str) -> None:
        noted.append((job.subject, problem))

    working = Working(*[KeyError("x")] * 9, give_up=give_up)

    await working.run_until(after(days=9))

    assert noted == [("A1", "KeyError")]
    assert working.clock.now() - NOW == timedelta(minutes=6)
