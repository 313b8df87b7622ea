"""Runs jobs when they are due. `run_due` has the logic; `run_forever` is a loop around it."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from sandbox_sim.callbacks.callback_dispatcher import CallbackDispatcher
from sandbox_sim.ports import STORE_PAUSE_S, Clock, DataRefused, Store, StoreError, Topic, Unit
from sandbox_sim.records.callbacks import CallbackRecord
from sandbox_sim.records.jobs import Job, JobKind

BATCH: Final = 100

# `run_forever` runs at most this many jobs, and answers requests before it runs the next.
JOBS_PER_TURN: Final = 32

# Gateway time until the next try after the jobs could not be run.
RETRY_DELAY: Final = timedelta(seconds=1)

# `advance` also follows this many records of requests that arrive after it began: a receiver may
# answer a callback with its next payment, and expects that payment to end too.
MAX_NEWER_FOLLOWED: Final = 200

# `advance` runs the jobs of other records in at most this many steps.
MAX_STEPS: Final = 100


# Earlier than any job is due.
_BEFORE_ALL_JOBS: Final = datetime(1970, 1, 1, tzinfo=UTC)


log = logging.getLogger("sandbox_sim.jobs")


T = TypeVar("T")

AfterCommit = Callable[[], None]

JobHandler = Callable[[Unit, Job, datetime], Awaitable[AfterCommit | None]]


class _FollowedRecords:
    """The records that `advance` follows: it stops where their jobs are due, and waits for them.

    A job names its record, and a callback also its payment. subjects: the records that existed at
    the beginning. newer: how many records of newer requests may be added.
    """

    def __init__(self, subjects: Iterable[str] = (), newer: float = math.inf) -> None:
        self._subjects = set(subjects)
        self._room_for_newer = newer

    def follows(self, subject: str) -> bool:
        """Whether this record is followed; adds it if it is new and there is room."""
        if subject not in self._subjects:
            if self._room_for_newer <= 0:
                return False
            self._room_for_newer -= 1
            self._subjects.add(subject)
        return True

    def follows_callback(self, callback: CallbackRecord) -> bool:
        """Whether a callback is followed, or belongs to a payment that is."""
        if callback.network_transaction_id in self._subjects:
            self._subjects.add(callback.id)
        return self.follows(callback.id)


@dataclass(eq=False, repr=False)
class Scheduler:
    """Runs each job with the handler of its kind; several jobs share one unit of work.

    A handler returns what to do after the commit, and then keeps the claim of the job; or None, and
    then the job is finished in the same unit.
    """

    store: Store
    clock: Clock
    deliveries: CallbackDispatcher
    handlers: Mapping[JobKind, JobHandler]

    def __post_init__(self) -> None:
        self._wake = asyncio.Event()
        self._asleep_until: datetime | None = None
        self._lock = asyncio.Lock()
        # The jobs that ran since `advance` began; None while it does not run.
        self._ran: list[Job] | None = None
        self._followed = _FollowedRecords()
        self.store.watch_jobs(self._wake_if_earlier)

    async def run_forever(self) -> None:
        """Run jobs as they fall due, and log what fails; never returns."""
        while True:
            try:
                if await self.run_due(self.clock.now(), JOBS_PER_TURN):
                    await self.clock.pause(0)
                    continue
                self._wake.clear()
                self._asleep_until = None
                self._asleep_until = await self._next_due()
            except StoreError as error:
                log.error("the jobs wait for the store: %s", error)  # noqa: TRY400
                await self.clock.pause(STORE_PAUSE_S)
                continue
            except Exception:
                log.exception("the jobs could not be run; trying again in %s", RETRY_DELAY)
                self._wake.clear()
                self._asleep_until = self.clock.now() + RETRY_DELAY
            await self.clock.wait(self._wake, self._asleep_until)

    async def run_due(self, now: datetime, limit: int = BATCH) -> Sequence[Job]:
        """Run the jobs that are due at `now`, at most `limit`; returns them, in order.

        Attempts at callbacks begin, and are not waited for. Raises `StoreError`.
        """
        async with self._lock:
            try:
                jobs, actions = await self.store.run(lambda unit: self._run_batch(unit, now, limit))
            except Exception as error:
                if not isinstance(error, StoreError):
                    log.exception("a job failed; trying each job alone")
                jobs, actions = await self._run_one(now)
            for action in actions:
                action()
            if self._ran is not None:
                self._ran.extend(jobs)
            return jobs

    async def replace_records(
        self, service_id: int | None, work: Callable[[Unit], Awaitable[T]]
    ) -> T:
        """Run a unit that deletes or replaces the records of a service, or of all (None).

        Attempts at their callbacks are cancelled and not recorded, and none begins meanwhile.
        """
        async with self._lock, self.deliveries.abandoned(service_id):
            return await self.store.run(work)

    async def run_until_idle(self) -> None:
        """Run all jobs that are due, also those they add, and wait for attempts at callbacks.

        During `advance` it stops when none of them is for a record that is followed.
        """
        now, followed = self.clock.now(), self._followed
        while True:
            ran = jobs = await self.run_due(now)
            while len(jobs) == BATCH:
                jobs = await self.run_due(now)
                ran = [*ran, *jobs]
            attempts = list(filter(followed.follows_callback, self.deliveries.claimed))
            if not attempts and not any(followed.follows(job.subject) for job in ran):
                return
            await self.deliveries.wait_for(attempts)

    async def step(self) -> bool:
        """Move the clock to the next due time and run what is due; False if there is no job.

        Attempts at callbacks begin, and are not waited for.
        """
        due = await self._next_due()
        if due is None:
            return False
        self.clock.move_to(max(due, self.clock.now()))
        state = self.clock.state
        await self.store.run(lambda unit: unit.save_clock(state))
        while await self.run_due(self.clock.now()):
            pass
        return True

    async def advance(self, by: timedelta) -> Sequence[Job]:
        """Move the clock on, stopping at every due time; returns the jobs that ran, in order.

        These include jobs that `run_forever` ran meanwhile. Requests that arrive meanwhile add jobs
        all the time, so it stops only at the due times of records that existed when it began, of
        what these cause, and of a few newer ones. Jobs of others run at the next stop, which is at
        most a hundredth of the way ahead; it does not wait for their callbacks.

        The target is saved first, so that a start after a crash goes on from there. The time at the
        end is saved and announced, because real time has passed meanwhile; then other servers
        follow.
        """
        target = self.clock.now() + by
        target_state = self.clock.state.moved(by)
        await self.store.run(lambda unit: unit.save_clock(target_state))
        ran = self._ran = []
        self._followed = await self._records_until(target)
        try:
            await self.run_until_idle()
            await self._advance_in_steps(target, by / MAX_STEPS)
        finally:
            self._ran = None
            self._followed = _FollowedRecords()
        self.clock.move_to(max(target, self.clock.now()))
        final_state = self.clock.state

        async def save_final_state(unit: Unit) -> None:
            await unit.save_clock(final_state)
            await unit.announce(Topic.CLOCK)

        await self.store.run(save_final_state)
        return ran

    async def _records_until(self, target: datetime) -> _FollowedRecords:
        """The records with a job due by then, or a callback that is being sent."""
        async with self._lock:
            jobs = await self.store.run(lambda unit: unit.jobs_after(_BEFORE_ALL_JOBS))
            subjects = [job.subject for job in jobs if job.due_at <= target]
            subjects += [callback.id for callback in self.deliveries.claimed]
        return _FollowedRecords(subjects, MAX_NEWER_FOLLOWED)

    async def _advance_in_steps(self, target: datetime, min_step: timedelta) -> None:
        """Move the clock towards the target, and run what is due at each stop.

        min_step: by how much it moves where the next job is of a record that is not followed.
        """
        arrived = False
        while not arrived and (job := await self._next_job()) and job.due_at <= target:
            now = self.clock.now()
            stop = max(job.due_at, now)
            if not self._followed.follows(job.subject):
                arrived = now >= target
                stop = max(stop, min(now + min_step, target))
            self.clock.move_to(stop)
            await self.run_until_idle()

    async def _run_batch(
        self, unit: Unit, now: datetime, limit: int
    ) -> tuple[Sequence[Job], list[AfterCommit]]:
        jobs = await unit.claim_due(now, limit)
        actions: list[AfterCommit] = []
        for job in jobs:
            action = await self.handlers[job.kind](unit, job, now)
            if action is None:
                await unit.finish(job)
            else:
                actions.append(action)
        return jobs, actions

    async def _run_one(self, now: datetime) -> tuple[Sequence[Job], list[AfterCommit]]:
        """Run the next job alone; postpone it if it fails."""
        try:
            return await self.store.run(lambda unit: self._run_batch(unit, now, 1))
        except Exception as error:
            # If the store is unavailable, this raises too, and the job keeps its due time. If its
            # disk is full, this may still fit, and the job is tried again soon.
            is_away = isinstance(error, StoreError) and not isinstance(error, DataRefused)
            jobs = await self.store.run(lambda unit: _postpone(unit, now, is_away=is_away))
            for job in jobs:
                log.exception("%s %s failed; it is put off", job.kind, job.subject)
            return jobs, []

    async def _next_due(self) -> datetime | None:
        return await self.store.run(lambda unit: unit.next_due())

    async def _next_job(self) -> Job | None:
        return next(iter(await self.store.run(lambda unit: unit.next_jobs(1))), None)

    def _wake_if_earlier(self, due_at: datetime) -> None:
        if self._asleep_until is None or due_at < self._asleep_until:
            self._wake.set()


async def _postpone(unit: Unit, now: datetime, *, is_away: bool) -> Sequence[Job]:
    jobs = await unit.claim_due(now, 1)
    for job in jobs:
        await unit.finish(job)
        postponed = job._replace(due_at=now + RETRY_DELAY) if is_away else job.rescheduled(now)
        await unit.add_job(postponed)
    return jobs
