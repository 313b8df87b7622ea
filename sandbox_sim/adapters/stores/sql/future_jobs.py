"""The jobs that are still to come, in SQL."""

from collections.abc import Sequence
from datetime import datetime

from sandbox_sim.adapters.stores.sql import rows
from sandbox_sim.adapters.stores.sql.rows import to_datetime, to_micros
from sandbox_sim.adapters.stores.sql.statements import SqlBase, select
from sandbox_sim.domain.jobs import Job

_JOBS_AFTER = select(rows.JOB, "jobs", "lease_until = 0 AND due_at > ? ORDER BY due_at, number")
_NEXT_JOBS = select(rows.JOB, "jobs", "lease_until = 0 ORDER BY due_at, number LIMIT ?")


class SqlFutureJobs(SqlBase):
    """The part of a `Unit` that looks at unclaimed jobs and changes none."""

    async def jobs_after(self, moment: datetime) -> Sequence[Job]:
        return [rows.to_job(row) for row in await self._fetch(_JOBS_AFTER, to_micros(moment))]

    async def next_jobs(self, limit: int) -> Sequence[Job]:
        return [rows.to_job(row) for row in await self._fetch(_NEXT_JOBS, limit)]

    async def next_due(self) -> datetime | None:
        row = await self._fetch_one("SELECT min(due_at) FROM jobs WHERE lease_until = 0")
        return None if row is None or row[0] is None else to_datetime(row[0])
