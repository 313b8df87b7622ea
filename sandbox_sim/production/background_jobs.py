"""Runs claimed jobs that wait for something outside the store, each in a task of its own.

The work finishes its job in the unit of work that saves the result. If the store is unavailable,
the work is done again from the beginning, so it must be safe to repeat. Work that raises is tried
again by the policy of `Job.rescheduled`; the number of failures is saved with the job. If the
process dies, the claim runs out and another server does the work.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sandbox_sim.ports import Clock, JobLost, RunningTasks, Store, Unit, run_until_saved
from sandbox_sim.records.jobs import Job

GiveUp = Callable[[Unit, Job, str], Awaitable[None]]


log = logging.getLogger("sandbox_sim.networks")


@dataclass(eq=False, repr=False)
class BackgroundJobs:
    """Runs the work of jobs of one kind.

    give_up: ends a job that failed so often that it is listed, in the unit that deletes it; gets
    the name of the exception. None: such a job is tried again, by `Job.rescheduled`.
    """

    store: Store
    clock: Clock
    work: Callable[[Job], Awaitable[None]]
    give_up: GiveUp | None = None

    def __post_init__(self) -> None:
        self._tasks = RunningTasks()

    async def on_due(self, _unit: Unit, job: Job, _now: datetime) -> Callable[[], None]:
        """Handle a job: the work begins after the commit of the claim."""
        return partial(self.start, job)

    def start(self, job: Job) -> None:
        """Begin the work of a claimed job."""
        self._tasks.start(self._run(job))

    async def wait_idle(self) -> None:
        """Wait until no job is running."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Cancel what is under way; the jobs stay claimed until the store is closed."""
        await self._tasks.cancel()

    async def _run(self, job: Job) -> None:
        try:
            await self._retried(job, partial(self.work, job))
        except Exception as error:
            log.exception("%s %s failed", job.kind, job.subject)
            postpone = partial(self._postpone, job, type(error).__name__)
            await self._retried(job, partial(self.store.run, postpone))

    async def _retried(self, job: Job, work: Callable[[], Awaitable[None]]) -> None:
        """Do this work of a job, again and again while the store is away."""
        on_away = partial(log.error, "%s %s waits for the store: %s", job.kind, job.subject)
        try:
            await run_until_saved(self.clock, work, on_away)
        except JobLost as lost:
            log.warning("%s %s is not recorded: %s", job.kind, job.subject, lost)

    async def _postpone(self, job: Job, problem: str, unit: Unit) -> None:
        await unit.finish(job)
        later = job.rescheduled(self.clock.now())
        if later.is_listed:
            times = later.failures
            log.error("%s %s failed %d times and is listed", job.kind, job.subject, times)
        if later.is_listed and self.give_up is not None:
            await self.give_up(unit, job, problem)
        else:
            await unit.add_job(later)
