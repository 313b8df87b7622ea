"""Gateway time under `/_sandbox/clock`: show, move and stop it. Source: docs/control-api.md."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from aiohttp import web
from pydantic import Field

from sandbox_sim.domain.jobs import Job
from sandbox_sim.domain.timestamps import iso
from sandbox_sim.gateway.control.clock_control import ClockControl
from sandbox_sim.gateway.control.clock_reset import ClockCannotGoBack
from sandbox_sim.gateway.control.clock_view import shown
from sandbox_sim.gateway.ports import Clock
from sandbox_sim.web.control.control_input import (
    Guard,
    Input,
    Nothing,
    Routes,
    body_of,
    error,
    query_of,
)

# A leap longer than that is a mistake, and the calendar has an end.
MAX_S = 366 * 86_400


class Advance(Input):
    """What `advance` takes; `timedelta(seconds=…)` of gateway time."""

    seconds: float = Field(
        ge=0, le=MAX_S, allow_inf_nan=False, description=f"a number of seconds from 0 to {MAX_S}"
    )


class ClockRoutes:
    """Time, for whoever holds the control token; it is one for all services."""

    def __init__(self, clock: Clock, clock_control: ClockControl, guard: Guard) -> None:
        self._clock = clock
        self._clock_control = clock_control
        self._guard = guard

    def routes(self) -> Routes:
        """The route table."""
        return [
            ("GET", "/_sandbox/clock", self._guard(self.show)),
            ("POST", "/_sandbox/clock/advance", self._guard(self.advance)),
            ("POST", "/_sandbox/clock/freeze", self._guard(self.freeze)),
            ("POST", "/_sandbox/clock/resume", self._guard(self.resume)),
            ("POST", "/_sandbox/clock/reset", self._guard(self.reset)),
        ]

    async def show(self, request: web.Request) -> web.Response:
        """Gateway time, whether it stands still, and how far it was moved in seconds."""
        query_of(request, Nothing)
        return web.json_response(shown(self._clock))

    async def advance(self, request: web.Request) -> web.Response:
        """Move time on; answers when all that fell due on the way is done, callbacks included."""
        by = timedelta(seconds=(await body_of(request, Advance)).seconds)
        ran = await self._clock_control.advance(by)
        return web.json_response({**shown(self._clock), "ran": [_job(job) for job in ran]})

    async def freeze(self, request: web.Request) -> web.Response:
        """Let gateway time stand still; what is due now is still done, and `advance` works."""
        return await self._set(request, self._clock_control.freeze)

    async def resume(self, request: web.Request) -> web.Response:
        """Let gateway time go on from where it stands."""
        return await self._set(request, self._clock_control.resume)

    async def reset(self, request: web.Request) -> web.Response:
        """Bring gateway time back to the machine's; HTTP 409 where a later record still waits."""
        try:
            return await self._set(request, self._clock_control.reset)
        except ClockCannotGoBack as refused:
            return error(409, "records_wait", str(refused))

    async def _set(
        self, request: web.Request, change: Callable[[], Awaitable[None]]
    ) -> web.Response:
        await body_of(request, Nothing, optional=True)
        await change()
        return web.json_response(shown(self._clock))


def _job(job: Job) -> dict[str, object]:
    """A job that ran: `subject` is the id of the transaction, callback, page or send."""
    return {
        "due_at": iso(job.due_at),
        "kind": job.kind.value,
        "service_id": job.service_id,
        "subject": job.subject,
    }
