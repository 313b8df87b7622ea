"""The scheduler: runs the jobs that are due. `run_due(now)` is the logic, the loop is thin."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.gateway.callbacks.callback_dispatcher import CallbackDispatcher
from sandbox_sim.gateway.ports import STORE_PAUSE_S, Clock, Store, StoreError, Topic, Unit

BATCH: Final = 100
# A job that raises is a bug of ours; it is put off rather than lost, and the rest go on.
PUT_OFF: Final = timedelta(minutes=1)
PAUSE: Final = timedelta(seconds=1)

log = logging.getLogger("sandbox_sim.jobs")

Afterwards = Callable[[], None]
Handler = Callable[[Unit, Job, datetime], Awaitable[Afterwards | None]]


class Scheduler:
    """Runs jobs by kind; several of them share one unit of work."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        deliveries: CallbackDispatcher,
        handlers: Mapping[JobKind, Handler],
    ) -> None:
        self._store = store
        self._clock = clock
        self._deliveries = deliveries
        self._handlers = handlers
        self._wake = asyncio.Event()
        self._asleep_until: datetime | None = None
        self._one_at_a_time = asyncio.Lock()
        # What ran while the clock is moved on; nobody asks at other times.
        self._ran_on_the_way: list[Job] | None = None
        store.watch_jobs(self._notice)

    async def run_forever(self) -> None:
        """The loop around `run_due`."""
        while True:
            try:
                if await self.run_due(self._clock.now()):
                    continue
                self._wake.clear()
                self._asleep_until = None
                self._asleep_until = await self._next_due()
            except StoreError as error:
                log.error("the jobs wait for the store: %s", error)  # noqa: TRY400
                await self._clock.pause(STORE_PAUSE_S)
                continue
            except Exception:
                log.exception("the jobs could not be run; trying again in %s", PAUSE)
                self._wake.clear()
                self._asleep_until = self._clock.now() + PAUSE
            await self._clock.wait(self._wake, self._asleep_until)

    async def run_due(self, now: datetime) -> Sequence[Job]:
        """Run up to a batch of the jobs due at `now`; callbacks leave in the background."""
        async with self._one_at_a_time:
            try:
                jobs, afterwards = await self._store.run(lambda unit: self._batch(unit, now, BATCH))
            except Exception as error:
                if not isinstance(error, StoreError):
                    log.exception("a job failed; trying each by itself")
                jobs, afterwards = await self._one(now)
            for act in afterwards:
                act()
            if self._ran_on_the_way is not None:
                self._ran_on_the_way.extend(jobs)
            return jobs

    async def settle(self) -> None:
        """Run everything due now, attempts at callbacks included, and what they cause in turn."""
        while await self.run_due(self._clock.now()) or not self._deliveries.idle:
            await self._deliveries.wait_idle()

    async def step(self) -> bool:
        """Move the clock to the next due time and run all that is due; False where there is none.

        Callbacks are on their way then, and their attempts not waited for.
        """
        due = await self._next_due()
        if due is None:
            return False
        self._clock.move_to(max(due, self._clock.now()))
        arrived = self._clock.state
        await self._store.run(lambda unit: unit.save_clock(arrived))
        while await self.run_due(self._clock.now()):
            pass
        return True

    async def advance(self, by: timedelta) -> Sequence[Job]:
        """Move the clock on, stopping at every due time on the way; returns what ran, in order.

        That is what the loop was quicker to run, too. Where it goes is kept first, so that a start
        after a crash on the way goes on from there; and where it arrived last, because real time
        went on meanwhile: other servers follow then.
        """
        target = self._clock.now() + by
        goal = self._clock.state.moved(by)
        await self._store.run(lambda unit: unit.save_clock(goal))
        ran = self._ran_on_the_way = []
        try:
            await self.settle()
            while (due := await self._next_due()) is not None and due <= target:
                self._clock.move_to(max(due, self._clock.now()))
                await self.settle()
        finally:
            self._ran_on_the_way = None
        self._clock.move_to(max(target, self._clock.now()))
        arrived = self._clock.state

        async def arrive(unit: Unit) -> None:
            await unit.save_clock(arrived)
            await unit.announce(Topic.CLOCK)

        await self._store.run(arrive)
        return ran

    async def _batch(
        self, unit: Unit, now: datetime, limit: int
    ) -> tuple[Sequence[Job], list[Afterwards]]:
        jobs = await unit.claim_due(now, limit)
        found = [await self._handle(unit, job, now) for job in jobs]
        return jobs, [act for act in found if act is not None]

    async def _handle(self, unit: Unit, job: Job, now: datetime) -> Afterwards | None:
        act = await self._handlers[job.kind](unit, job, now)
        if act is None:
            await unit.finish(job)
        return act

    async def _one(self, now: datetime) -> tuple[Sequence[Job], list[Afterwards]]:
        """The next job alone; put off if it is the one that fails."""
        try:
            return await self._store.run(lambda unit: self._batch(unit, now, 1))
        except Exception as error:
            # Where the store is away, this raises too, and no job is to blame. One that is full
            # may take as much; that passes as soon as there is room.
            by = PAUSE if isinstance(error, StoreError) else PUT_OFF
            jobs = await self._store.run(lambda unit: _put_off(unit, now, by))
            log.exception("the failing job was put off by %s", by)
            return jobs, []

    async def _next_due(self) -> datetime | None:
        return await self._store.run(lambda unit: unit.next_due())

    def _notice(self, due_at: datetime) -> None:
        if self._asleep_until is None or due_at < self._asleep_until:
            self._wake.set()


async def _put_off(unit: Unit, now: datetime, by: timedelta) -> Sequence[Job]:
    jobs = await unit.claim_due(now, 1)
    for job in jobs:
        await unit.finish(job)
        await unit.add_job(Job(now + by, job.kind, job.service_id, job.subject))
    return jobs
