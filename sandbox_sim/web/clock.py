"""Gateway time under `/_sandbox/clock`: what it is, and moving it on. Source: CONVENTIONS."""

import asyncio
from datetime import timedelta

from aiohttp import web
from pydantic import Field

from sandbox_sim.domain.jobs import Job
from sandbox_sim.domain.timestamps import iso
from sandbox_sim.gateway.clock import shown
from sandbox_sim.gateway.jobs import Jobs
from sandbox_sim.gateway.ports import Clock
from sandbox_sim.web.control_api import Guard, Input, Routes, body_of

# A leap longer than that is a mistake, and the calendar has an end.
MAX_S = 366 * 86_400


class Advance(Input):
    """What `advance` takes; `timedelta(seconds=…)` of gateway time."""

    seconds: float = Field(
        ge=0, le=MAX_S, allow_inf_nan=False, description=f"a number of seconds from 0 to {MAX_S}"
    )


class ClockFace:
    """Time, for whoever holds the control token; it is one for all services."""

    def __init__(self, clock: Clock, jobs: Jobs, guard: Guard) -> None:
        self._clock = clock
        self._jobs = jobs
        self._guard = guard
        self._one_at_a_time = asyncio.Lock()

    def routes(self) -> Routes:
        """The route table."""
        return [
            ("GET", "/_sandbox/clock", self._guard(self.show)),
            ("POST", "/_sandbox/clock/advance", self._guard(self.advance)),
        ]

    async def show(self, _request: web.Request) -> web.Response:
        """Gateway time, and how many seconds it was moved away from the machine's."""
        return web.json_response(shown(self._clock))

    async def advance(self, request: web.Request) -> web.Response:
        """Move time on; answers when all that fell due on the way is done, callbacks included."""
        by = timedelta(seconds=(await body_of(request, Advance)).seconds)
        async with self._one_at_a_time:
            ran = await self._jobs.advance(by)
        return web.json_response({**shown(self._clock), "ran": [_job(job) for job in ran]})


def _job(job: Job) -> dict[str, object]:
    """A job that ran: `subject` is the id of the transaction, callback, page or send."""
    return {
        "due_at": iso(job.due_at),
        "kind": job.kind.value,
        "service_id": job.service_id,
        "subject": job.subject,
    }
