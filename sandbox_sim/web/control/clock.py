"""Gateway time under `/_sandbox/clock`: show, move and stop it. Source: docs/control-api.md."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class ClockRoutes:
    """The routes of the clock, which all services share."""

    clock: Clock
    clock_control: ClockControl

    def routes(self) -> Sequence[Route]:
        control = self.clock_control
        route = partial(Route, group="Clock", answers=(Answer(ClockView),))
        changes = partial(route, "POST", body=Body(Nothing, optional=True))
        return [
            route(
                "GET", "/_sandbox/clock", self.show, "show gateway time", query=Query(Nothing),
            ),
            route(
                "POST", "/_sandbox/clock/advance", self.advance,
                "move gateway time forward; answers after everything that fell due has run",
                answers=(Answer(AdvancedClock),), body=Body(Advance),
            ),
            changes(
                "/_sandbox/clock/freeze", partial(self.change, control.freeze),
                "stop gateway time; `advance` still moves it",
            ),
            changes(
                "/_sandbox/clock/resume", partial(self.change, control.resume),
                "let gateway time run again, from the time it shows",
            ),
            changes(
                "/_sandbox/clock/reset", partial(self.change, control.reset),
                "set gateway time back to the machine's time, and let it run",
                errors=(RECORDS_WAIT,),
            ),
        ]  # fmt: skip

    async def show(self, _request: web.Request, _asked: Nothing) -> ClockView:
        """Show gateway time."""
        return shown(self.clock)

    async def advance(self, _request: web.Request, asked: Advance) -> AdvancedClock:
        """Move gateway time; answer when all that fell due is done, including callbacks."""
        ran = await self.clock_control.advance(timedelta(seconds=asked.seconds))
        return {**shown(self.clock), "ran": [*map(_job_view, ran)]}

    async def change(
        self, change: Callable[[], Awaitable[None]], _request: web.Request, _asked: Nothing
    ) -> ClockView:
        """Stop gateway time, let it run, or set it to the machine's; answer with it."""
        await change()
        return shown(self.clock)
