"""Jobs, as a unit of work reads and writes them."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from sandbox_sim.domain.jobs import Job


class JobRecords(Protocol):
    """Work that falls due later.

    A job is free, claimed or finished. Only a free job can be claimed, by one server at a time, and
    only the server that has claimed it can finish it. A claim outlasts its unit of work. When a
    server closes, or dies and its lease runs out, its claimed jobs are free again.
    """

    async def add_job(self, job: Job) -> None:
        """Add a free job; the store numbers it. Does not lock.

        One exception: a job of a transaction in the answer gate, due almost at once, begins as
        claimed where several servers share the state. See `gateway.ports.answer_gate`.
        """
        ...

    async def claim_due(self, now: datetime, limit: int) -> Sequence[Job]:
        """Claim the free jobs that are due at `now`, at most `limit`; those due first come first.

        Jobs due at one moment come in the order in which they were added. Passes over jobs that
        another unit is claiming, and waits for none.
        """
        ...

    async def finish(self, job: Job) -> None:
        """Delete a job that this server has claimed.

        Raises `JobLost` if it is not claimed by us any more: it was finished, a reset or a restore
        has deleted it, or the lease ran out and another server has it. Then the unit must end: what
        it would write is not ours to write.
        """
        ...

    async def bring_forward(self, callback_ids: Collection[str], now: datetime) -> Sequence[str]:
        """Make the next attempts at these callbacks due at `now`, where they were due later.

        Returns the ids of the callbacks that have an unclaimed job for their delivery.
        """
        ...

    async def jobs_after(self, moment: datetime) -> Sequence[Job]:
        """The unclaimed jobs that are due later than this moment, earliest first."""
        ...

    async def next_jobs(self, limit: int) -> Sequence[Job]:
        """The unclaimed jobs that fall due next, earliest first, at most `limit`. Does not lock."""
        ...

    async def next_due(self) -> datetime | None:
        """When the next free job falls due; None if there is none. Does not lock."""
        ...
