"""The networks of production, the attempts at them, and their notifications. Source: D32, D39.

Notifications come in at `/_networks/{name}/…`, by POST and PUT. These paths need no credentials:
`NetworkNotifications` decides what is stored. Everything is listed under `/_sandbox/`.
"""

import math
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Annotated, Final, TypedDict

from aiohttp import web
from pydantic import Field

from sandbox_sim.operations import Operation
from sandbox_sim.ports import Clock
from sandbox_sim.production import attempt_views
from sandbox_sim.production.attempt_views import LiveRecordReader, NetworkAttemptView
from sandbox_sim.production.circuit_breaker import BreakerState
from sandbox_sim.production.network_overview import NetworkOverview, NetworkState
from sandbox_sim.records.attempts import AttemptQuery
from sandbox_sim.records.exchanges import (
    NotificationQuery,
    NotificationState,
    NotificationTrust,
    NotificationView,
    RawNotification,
)
from sandbox_sim.records.reports import Outcome
from sandbox_sim.values.json_text import viewer
from sandbox_sim.values.peer_input import storable
from sandbox_sim.web.control.errors import BODY_TOO_LARGE, NOT_FOUND, RequestRefused, error_response
from sandbox_sim.web.control.input import A_TIME, ListQuery, Moment, ServiceListQuery, Text
from sandbox_sim.web.routes import ErrorCode, ListOf, Reply, RouteGroup, route

if TYPE_CHECKING:  # serve starts faster without what only production needs
    from sandbox_sim.production.notifications import NetworkNotifications


class RouteView(TypedDict):
    """A route of the configuration; an empty list fits everything."""

    operation: Annotated[list[Annotated[str, Operation]], "those that it fits"]
    nw: Annotated[list[str], "the codes that it fits"]


class BreakerView(TypedDict):
    """The circuit breaker of a network, in the process that answers."""

    state: Annotated[str, BreakerState]
    faults: Annotated[int, "consecutive network faults"]
    opened_at: Annotated[str | None, "ISO 8601 in UTC; null while it is closed"]


class NetworkView(TypedDict):
    """A network of the configuration."""

    name: Annotated[str, "its name in the configuration"]
    adapter: Annotated[str, "what speaks its protocol"]
    operations: Annotated[list[Annotated[str, Operation]], "those that it carries out"]
    nws: Annotated[list[str], "the values of `nw` that it takes; empty for every one"]
    currencies: Annotated[list[str], "those that it takes"]
    notifications: Annotated[str, NotificationTrust]
    routes: Annotated[list[RouteView], "those that lead to it"]
    breaker: BreakerView
    open_attempts: Annotated[int, "attempts without an outcome yet"]
    kept_notifications: Annotated[dict[str, int], "how many are stored, by state"]
    dropped_notifications: Annotated[
        int, "unproven notifications that were not stored, in the process that answers"
    ]


class HealthView(TypedDict):
    """Whether a network can be reached."""

    ok: Annotated[bool, "it can be reached and accepts our credentials"]
    detail: Annotated[str, "what it answered, in words"]


class CheckedNetworkView(NetworkView):
    """A network, and the result of a check of its health."""

    health: HealthView


_list_of = partial(ListOf, "networks", has_next=False, order="in the order of the configuration")


_view_network, _view_breaker = viewer(NetworkView), viewer(BreakerView)


def network_view(state: NetworkState) -> NetworkView:
    """A network as the control API and the dashboard show it."""
    capabilities = state.capabilities
    routes = [{"operation": sorted(r.operations), "nw": sorted(r.nws)} for r in state.routes]
    return _view_network(
        state,
        operations=sorted(capabilities.operations),
        nws=sorted(capabilities.nws),
        currencies=sorted(capabilities.currencies),
        notifications=capabilities.trust,
        routes=routes,
        breaker=_view_breaker(state.breaker),
        kept_notifications=dict(sorted(state.kept_notifications.items())),
    )


class AttemptListQuery(ServiceListQuery):
    """The query of `GET attempts`; every field but `limit` and `after` is a filter."""

    network: Text | None = Field(None, description="the name of a network")
    reference: Text | None = Field(None, description="a reference")
    network_id: Text | None = Field(None, description="the network's identifier")
    outcome: Outcome | None = Field(None, strict=False, description=f"one of {', '.join(Outcome)}")
    since: Moment | None = Field(None, description=f"{A_TIME}, inclusive")
    until: Moment | None = Field(None, description=f"{A_TIME}, exclusive")

    def store_query(self) -> AttemptQuery:
        """The query for the store; it reads one attempt more than the page has."""
        return AttemptQuery(**self.model_dump(exclude={"limit"}), limit=self.page_size + 1)


# Longer than any notification of a network.
MAX_NOTIFICATION_BYTES: Final = 64 * 1024
_TOO_MANY: Final = ErrorCode(429, "too_many", "too many notifications do not belong to an attempt")


class NotificationHandler:
    """Stores notifications, and then acknowledges them."""

    def __init__(self, notifications: "NetworkNotifications", clock: Clock) -> None:
        self._notifications = notifications
        self._clock = clock

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer HTTP 200 with an empty body, also if the notification is dropped.

        404 for a network that is not configured, 413 for a body that is too long, and 429 for an
        unproven notification while too many of them name an unknown attempt.
        """
        name = request.match_info["name"]
        if not self._notifications.has_network(name):
            raise web.HTTPNotFound
        headers: dict[str, str] = {}
        for key, value in request.headers.items():
            lower = key.lower()
            text = storable(value)  # octets that are not UTF-8 come as unpaired surrogates
            headers[lower] = f"{headers[lower]}, {text}" if lower in headers else text
        body = await _read_body(request)
        if body is None:
            text = f"The body of a notification has at most {MAX_NOTIFICATION_BYTES:,} bytes"
            raise RequestRefused(BODY_TOO_LARGE, text)
        raw = RawNotification(
            name,
            request.method,
            request.match_info["tail"],
            request.rel_url.raw_query_string,
            headers,
            body,
            self._clock.now(),
        )
        wait = await self._notifications.receive(raw)
        if not wait:
            return web.Response()
        answer = error_response(_TOO_MANY, "Too many unproven notifications")
        answer.headers["Retry-After"] = str(math.ceil(wait))
        return answer


class NotificationListQuery(ListQuery):
    """The query of `GET networks/notifications`."""

    network: Text | None = Field(None, description="the name of a network")
    state: NotificationState | None = Field(
        None, strict=False, description=f"one of {', '.join(NotificationState)}"
    )


async def _read_body(request: web.Request) -> bytes | None:
    """The body; None if it is too long, without reading all of it."""
    if (request.content_length or 0) > MAX_NOTIFICATION_BYTES:
        return None
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > MAX_NOTIFICATION_BYTES:
            return None
    return bytes(body)


@dataclass(frozen=True, eq=False)
class NetworkRoutes(RouteGroup):
    """The routes of networks, attempts and notifications.

    notifications, live: of production; None if it is off, and the lists are then empty.
    """

    overview: NetworkOverview
    notifications: "NetworkNotifications | None"
    live: LiveRecordReader | None

    group = "Networks"

    @route("GET /_sandbox/networks", "list the networks of production",
           answer=_list_of(NetworkView))  # fmt: skip
    async def list(self, _request: web.Request) -> Reply:
        """List the networks of production, without a request to them."""
        return {"networks": [network_view(each) for each in await self.overview.states()]}

    @route("POST /_sandbox/networks/check", "check whether each network can be reached",
           answer=_list_of(CheckedNetworkView))  # fmt: skip
    async def check(self, _request: web.Request) -> Reply:
        """Check whether each network can be reached; a check requests at most a token."""
        found = await self.overview.states_with_health()
        checked = [
            {**network_view(state), "health": {"ok": health.ok, "detail": health.detail}}
            for state, health in found
        ]
        return {"networks": checked}

    @route("GET /_sandbox/networks/notifications",
           "list the notifications of networks that are kept, newest first",
           answer=ListOf("notifications", NotificationView))  # fmt: skip
    async def list_stored(self, _request: web.Request, query: NotificationListQuery) -> Reply:
        """List notifications; `next` is the value of `after` for the next page."""
        stored, limit = self.notifications, query.page_size + 1
        filters = NotificationQuery(query.network, query.state, query.after, limit)
        found = [] if stored is None else await stored.list_page(filters)
        return query.page_view("notifications", found, itemgetter("id"))

    @route("GET /_sandbox/attempts", "list the attempts at networks, newest first",
           answer=ListOf("attempts", NetworkAttemptView), errors=(NOT_FOUND,))  # fmt: skip
    async def attempts(self, _request: web.Request, query: AttemptListQuery) -> Reply:
        """List attempts; `next` is the value of `after` for the next page."""
        found = [] if self.live is None else await self.live.attempts(query.store_query())
        return query.page_view("attempts", found, attrgetter("id"), attempt_views.shown)
