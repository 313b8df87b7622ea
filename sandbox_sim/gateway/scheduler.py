"""Runs jobs when they are due. `run_due` has the logic; `run_forever` is a loop around it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.gateway.callbacks.callback_dispatcher import CallbackDispatcher
from sandbox_sim.gateway.ports import STORE_PAUSE_S, Clock, Store, StoreError, Topic, Unit

BATCH: Final = 100
# A job that raises is a bug of ours. It is put off by so much gateway time, and not lost.
PUT_OFF: Final = timedelta(minutes=1)
# Gateway time until the next try after the jobs could not be run.
PAUSE: Final = timedelta(seconds=1)

log = logging.getLogger("sandbox_sim.jobs")

Afterwards = Callable[[], None]
Handler = Callable[[Unit, Job, datetime], Awaitable[Afterwards | None]]


class Scheduler:
    """Runs each job with the handler of its kind; several jobs share one unit of work.

    A handler returns what to do after the commit, and then keeps the claim of the job; or None, and
    then the job is finished in the same unit.
    """

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
        # The jobs that ran since `advance` began; None while it does not run.
        self._ran: list[Job] | None = None
        store.watch_jobs(self._notice)

    async def run_forever(self) -> None:
        """Run jobs as they fall due, and log what fails; never returns."""
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
        """Run the jobs that are due at `now`, at most `BATCH`; returns them, in order.

        Attempts at callbacks begin, and are not waited for. Raises `StoreError`.
        """
        async with self._one_at_a_time:
            try:
                jobs, afterwards = await self._store.run(lambda unit: self._batch(unit, now, BATCH))
            except Exception as error:
                if not isinstance(error, StoreError):
                    log.exception("a job failed; trying each by itself")
                jobs, afterwards = await self._one(now)
            for act in afterwards:
                act()
            if self._ran is not None:
                self._ran.extend(jobs)
            return jobs

    async def settle(self) -> None:
        """Run all jobs that are due, also those they add, and wait for attempts at callbacks."""
        while await self.run_due(self._clock.now()) or not self._deliveries.idle:
            await self._deliveries.wait_idle()

    async def step(self) -> bool:
        """Move the clock to the next due time and run what is due; False if there is no job.

        Attempts at callbacks begin, and are not waited for.
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
        """Move the clock on, stopping at every due time; returns the jobs that ran, in order.

        Also those that `run_forever` ran meanwhile. The target is saved first, so that a start
        after a crash goes on from there. The time at the end is saved and announced, because real
        time has passed meanwhile; then other servers follow.
        """
        target = self._clock.now() + by
        goal = self._clock.state.moved(by)
        await self._store.run(lambda unit: unit.save_clock(goal))
        ran = self._ran = []
        try:
            await self.settle()
            while (due := await self._next_due()) is not None and due <= target:
                self._clock.move_to(max(due, self._clock.now()))
                await self.settle()
        finally:
            self._ran = None
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
        """Run the next job alone; put it off if it fails."""
        try:
            return await self._store.run(lambda unit: self._batch(unit, now, 1))
        except Exception as error:
            # If the store is away, this raises too, and the job keeps its due time. If its disk is
            # full, this may still fit; the job is tried again soon, for there may be room by then.
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
