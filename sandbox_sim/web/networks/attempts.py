"""Attempts at networks under `/_sandbox/attempts`. Source: D39."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypedDict

from aiohttp import web
from pydantic import Field
from pydantic.config import JsonDict

from sandbox_sim.domain.networks import attempt_views
from sandbox_sim.domain.networks.attempt_views import NetworkAttemptView
from sandbox_sim.domain.networks.attempts import AttemptQuery
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.web.control.input_models import ServiceListQuery
from sandbox_sim.web.control.input_parsing import BadInput
from sandbox_sim.web.routes import Answer, Query, Route

if TYPE_CHECKING:
    from sandbox_sim.gateway.networks.live_records import LiveRecords

_NO_NUL = r"^[^\x00]*$"  # no database takes it
_TIME: Final[JsonDict] = {"format": "date-time"}


class AttemptListQuery(ServiceListQuery):
    """The query of `GET attempts`; every field but `limit` and `after` is a filter."""

    network: str | None = Field(None, pattern=_NO_NUL, description="the name of a network")
    reference: str | None = Field(None, pattern=_NO_NUL, description="a reference")
    network_id: str | None = Field(None, pattern=_NO_NUL, description="the network's identifier")
    outcome: Outcome | None = Field(None, strict=False, description=f"one of {', '.join(Outcome)}")
    since: str | None = Field(
        None, json_schema_extra=_TIME, description="a time in ISO 8601, the first that is listed"
    )
    until: str | None = Field(
        None,
        json_schema_extra=_TIME,
        description="a time in ISO 8601, the first one left out",
    )

    def query(self) -> AttemptQuery:
        """The query for the store; it reads one attempt more than the page has."""
        return AttemptQuery(
            self.network,
            self.service_id,
            self.reference,
            self.network_id,
            self.outcome,
            _time("since", self.since),
            _time("until", self.until),
            self.after,
            self.page_size + 1,
        )


class AttemptPage(TypedDict):
    """A page of attempts, newest first."""

    attempts: list[NetworkAttemptView]
    next: str | None


class AttemptRoutes:
    """Lists the attempts at networks; without production there are none."""

    def __init__(self, live: "LiveRecords | None") -> None:
        self._live = live

    def routes(self) -> Sequence[Route]:
        """The one route."""
        return [
            Route(
                "GET", "/_sandbox/attempts", self.list,
                "list the attempts at networks, newest first", "Networks",
                (Answer(AttemptPage),), query=Query(AttemptListQuery),
            ),
        ]  # fmt: skip

    async def list(self, _request: web.Request, asked: AttemptListQuery) -> AttemptPage:
        """List attempts; `next` is the value of `after` for the next page."""
        query = asked.query()
        found = [] if self._live is None else await self._live.attempts(query)
        page, following = asked.page(found, lambda attempt: attempt.id)
        return {"attempts": [attempt_views.shown(each) for each in page], "next": following}


def _time(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{name} must be a time such as 2026-01-31T00:00:00Z") from None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)
