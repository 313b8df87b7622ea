"""Claimed jobs whose work waits for something outside of the store, each in a task of its own.

The work ends its job itself, in the unit of work that saves what it did. While the store is away it
is done again from the beginning, so it must be safe to repeat. If the process dies, the claim runs
out and another server does it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sandbox_sim.domain.jobs import Job
from sandbox_sim.gateway.ports import STORE_PAUSE_S, Clock, JobLost, Store, StoreError, Unit

# A job whose work raises is a bug of ours. It is put off by so much gateway time, and not lost.
PUT_OFF: Final = timedelta(minutes=1)

log = logging.getLogger("sandbox_sim.networks")


class BackgroundJobs:
    """Runs the work of jobs of one kind."""

    def __init__(self, store: Store, clock: Clock, work: Callable[[Job], Awaitable[None]]) -> None:
        self._store = store
        self._clock = clock
        self._work = work
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, job: Job) -> None:
        """Begin the work of a claimed job."""
        task = asyncio.create_task(self._run(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def idle(self) -> bool:
        """Whether no work is under way."""
        return not self._tasks

    async def wait_idle(self) -> None:
        """Return when no work is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Cancel what is under way; the jobs stay claimed until the store is closed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, job: Job) -> None:
        while True:
            try:
                return await self._work(job)
            except JobLost as lost:
                return log.warning("%s %s is not recorded: %s", job.kind, job.subject, lost)
            except StoreError as error:
                log.error("%s %s waits for the store: %s", job.kind, job.subject, error)  # noqa: TRY400
                await self._clock.pause(STORE_PAUSE_S)
            except Exception:
                log.exception("%s %s failed; it is put off", job.kind, job.subject)
                return await self._put_off(job)

    async def _put_off(self, job: Job) -> None:
        try:
            await self._store.run(partial(_put_off, job, self._clock.now() + PUT_OFF))
        except (StoreError, JobLost) as error:
            log.error("%s %s is lost until the claim ends: %s", job.kind, job.subject, error)  # noqa: TRY400


async def _put_off(job: Job, due_at: datetime, unit: Unit) -> None:
    await unit.finish(job)
    await unit.add_job(job._replace(due_at=due_at, number=0))
