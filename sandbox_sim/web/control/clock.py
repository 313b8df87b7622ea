"""Gateway time under `/_sandbox/clock`: show, move and stop it. Source: docs/control-api.md."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
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
from sandbox_sim.web.routes import Answer, Body, Query, Route

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
    """Gateway time after a step, and the jobs that ran on the way, in order."""

    ran: Annotated[list[JobView], "oldest first"]


class ClockRoutes:
    """The routes of the clock, which all services share."""

    def __init__(self, clock: Clock, clock_control: ClockControl) -> None:
        self._clock = clock
        self._clock_control = clock_control

    def routes(self) -> Sequence[Route]:
        route = partial(Route, group="Clock")
        shows = (Answer(ClockView),)
        no_body = Body(Nothing, optional=True)
        return [
            route(
                "GET", "/_sandbox/clock", self.show, "show gateway time",
                answers=shows, query=Query(Nothing),
            ),
            route(
                "POST", "/_sandbox/clock/advance", self.advance,
                "move gateway time forward; answers after everything that fell due has run",
                answers=(Answer(AdvancedClock),), body=Body(Advance),
            ),
            route(
                "POST", "/_sandbox/clock/freeze", self.freeze,
                "stop gateway time; `advance` still moves it",
                answers=shows, body=no_body,
            ),
            route(
                "POST", "/_sandbox/clock/resume", self.resume,
                "let gateway time run again, from the time it shows",
                answers=shows, body=no_body,
            ),
            route(
                "POST", "/_sandbox/clock/reset", self.reset,
                "set gateway time back to the machine's time, and let it run",
                answers=shows, body=no_body, errors=(RECORDS_WAIT,),
            ),
        ]  # fmt: skip

    async def show(self, _request: web.Request, _asked: Nothing) -> ClockView:
        """Show gateway time."""
        return shown(self._clock)

    async def advance(self, _request: web.Request, asked: Advance) -> AdvancedClock:
        """Move gateway time; answer when all that fell due is done, including callbacks."""
        ran = await self._clock_control.advance(timedelta(seconds=asked.seconds))
        return {**shown(self._clock), "ran": [*map(_job_view, ran)]}

    async def freeze(self, _request: web.Request, _asked: Nothing) -> ClockView:
        """Stop gateway time. Jobs that are due now still run, and `advance` works."""
        await self._clock_control.freeze()
        return shown(self._clock)

    async def resume(self, _request: web.Request, _asked: Nothing) -> ClockView:
        """Let gateway time run again, from the time it shows."""
        await self._clock_control.resume()
        return shown(self._clock)

    async def reset(self, _request: web.Request, _asked: Nothing) -> ClockView:
        """Set gateway time to the machine's time; HTTP 409 if a later record still waits."""
        await self._clock_control.reset()
        return shown(self._clock)
