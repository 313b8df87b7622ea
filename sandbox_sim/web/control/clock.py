"""Gateway time under `/_sandbox/clock`: show, move and stop it. Source: docs/control-api.md."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, TypedDict

from aiohttp import web
from pydantic import Field

from sandbox_sim.control.clock import ClockControl
from sandbox_sim.ports import Clock
from sandbox_sim.ports.clock import ClockView, shown
from sandbox_sim.records.jobs import JobKind
from sandbox_sim.values.json_text import viewer
from sandbox_sim.values.timestamps import Timestamp
from sandbox_sim.web.control.errors import RECORDS_WAIT
from sandbox_sim.web.control.input import Input, Nothing
from sandbox_sim.web.routes import RouteGroup, route

# A longer step is probably a mistake, and the calendar has an end.
MAX_S = 366 * 86_400


class Advance(Input):
    """The body of `advance`.

    seconds: how far to move gateway time.
    """

    seconds: float = Field(
        ge=0, le=MAX_S, allow_inf_nan=False, description=f"a number of seconds from 0 to {MAX_S}"
    )


class JobView(TypedDict):
    """A job that ran."""

    due_at: Timestamp
    kind: Annotated[str, JobKind]
    service_id: int
    subject: Annotated[str, "the identifier that `kind` has in brackets"]


_job_view = viewer(JobView)


class AdvancedClock(ClockView):
    """Gateway time after a step, and the jobs that ran during it, in order."""

    ran: Annotated[list[JobView], "oldest first"]


@dataclass(frozen=True, eq=False)
class ClockRoutes(RouteGroup):
    """The routes of the clock, which all services share."""

    clock: Clock
    clock_control: ClockControl

    group = "Clock"

    @route("GET /_sandbox/clock", "show gateway time")
    async def show(self, _request: web.Request, _query: Nothing) -> ClockView:
        return shown(self.clock)

    @route("POST /_sandbox/clock/advance",
           "move gateway time forward; answers after everything that fell due has run")  # fmt: skip
    async def advance(self, _request: web.Request, body: Advance) -> AdvancedClock:
        """Move gateway time; answer when all that fell due is done, including callbacks."""
        ran = await self.clock_control.advance(timedelta(seconds=body.seconds))
        return {**shown(self.clock), "ran": [*map(_job_view, ran)]}

    @route("POST /_sandbox/clock/freeze", "stop gateway time; `advance` still moves it",
           optional=True)  # fmt: skip
    async def freeze(self, _request: web.Request, _body: Nothing) -> ClockView:
        await self.clock_control.freeze()
        return shown(self.clock)

    @route("POST /_sandbox/clock/resume", "let gateway time run again, from the time it shows",
           optional=True)  # fmt: skip
    async def resume(self, _request: web.Request, _body: Nothing) -> ClockView:
        await self.clock_control.resume()
        return shown(self.clock)

    @route("POST /_sandbox/clock/reset",
           "set gateway time back to the machine's time, and let it run",
           optional=True, errors=(RECORDS_WAIT,))  # fmt: skip
    async def reset(self, _request: web.Request, _body: Nothing) -> ClockView:
        await self.clock_control.reset()
        return shown(self.clock)
