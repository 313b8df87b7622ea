"""Jobs, as a unit of work sees them."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from sandbox_sim.domain.jobs import Job


class JobRecords(Protocol):
    """Work that falls due later."""

    async def add_job(self, job: Job) -> None:
        """Save a job; the store numbers it."""
        ...

    async def claim_due(self, now: datetime, limit: int) -> Sequence[Job]:
        """The jobs due at `now`, oldest first; nobody else gets them until they are finished."""
        ...

    async def finish(self, job: Job) -> None:
        """A claimed job is done; `JobLost` where it is ours no more."""
        ...

    async def bring_forward(self, callback_ids: Collection[str], now: datetime) -> Sequence[str]:
        """Make the next attempts at these callbacks due at `now`, where they were due later.

        Returns the ids of the callbacks that have an unclaimed `DELIVER` job.
        """
        ...

    async def jobs_after(self, moment: datetime) -> Sequence[Job]:
        """The unclaimed jobs that are due later than this moment, earliest first."""
        ...

    async def next_due(self) -> datetime | None:
        """When the next unclaimed job falls due."""
        ...
