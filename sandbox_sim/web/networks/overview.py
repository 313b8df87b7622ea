"""The networks of production under `/_sandbox/networks`. Source: D32, D39."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, TypedDict

from aiohttp import web

from sandbox_sim.domain.networks.circuit_breaker import BreakerState
from sandbox_sim.domain.networks.notifications import NotificationTrust
from sandbox_sim.domain.networks.routing import Route as NetworkRoute
from sandbox_sim.domain.timestamps import iso
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.networks.network_overview import NetworkOverview, NetworkState
from sandbox_sim.gateway.ports.network import Health
from sandbox_sim.web.routes import Answer, Route


class RouteView(TypedDict):
    """A route of the configuration; an empty list fits everything."""

    operation: list[Annotated[str, Operation]]
    nw: list[str]


class BreakerView(TypedDict):
    """The circuit breaker of a network, in the process that answers."""

    state: Annotated[str, BreakerState]
    faults: Annotated[int, "faults of transport in a row"]
    opened_at: str | None


class NetworkView(TypedDict):
    """A network of the configuration."""

    name: str
    adapter: str
    operations: list[Annotated[str, Operation]]
    nws: Annotated[list[str], "the values of `nw` that it takes; empty for every one"]
    currencies: list[str]
    notifications: Annotated[str, NotificationTrust]
    routes: list[RouteView]
    breaker: BreakerView
    open_attempts: Annotated[int, "attempts whose outcome the network has not told"]


class HealthView(TypedDict):
    """Whether a network can be reached."""

    ok: bool
    detail: str


class CheckedNetworkView(NetworkView):
    """A network, and what it answered when it was asked for its health."""

    health: HealthView


class NetworkList(TypedDict):
    """All networks, in the order of the configuration; none without production."""

    networks: list[NetworkView]


class CheckedNetworkList(TypedDict):
    """The same, each asked for its health."""

    networks: list[CheckedNetworkView]


class NetworkRoutes:
    """What the networks do, and whether they work."""

    def __init__(self, overview: NetworkOverview) -> None:
        self._overview = overview

    def routes(self) -> Sequence[Route]:
        """The routes of the networks."""
        route = partial(Route, group="Networks")
        return [
            route(
                "GET", "/_sandbox/networks", self.list, "list the networks of production",
                answers=(Answer(NetworkList),),
            ),
            route(
                "POST", "/_sandbox/networks/check", self.check,
                "ask each network whether it can be reached",
                answers=(Answer(CheckedNetworkList),),
            ),
        ]  # fmt: skip

    async def list(self, _request: web.Request) -> NetworkList:
        """List the networks of production, without asking them anything."""
        return {"networks": [network_view(each) for each in await self._overview.states()]}

    async def check(self, _request: web.Request) -> CheckedNetworkList:
        """Ask each network whether it can be reached; at most, it is asked for a token."""
        found = await self._overview.checked()
        return {
            "networks": [
                {**network_view(state), "health": _health(health)} for state, health in found
            ]
        }


def network_view(state: NetworkState) -> NetworkView:
    """A network as the control API and the dashboard show it."""
    can, opened_at = state.capabilities, state.breaker.opened_at
    return {
        "name": state.name,
        "adapter": state.adapter,
        "operations": sorted(each.value for each in can.operations),
        "nws": sorted(can.nws),
        "currencies": sorted(can.currencies),
        "notifications": can.trust.value,
        "routes": [_route(each) for each in state.routes],
        "breaker": {
            "state": state.breaker.state.value,
            "faults": state.breaker.faults,
            "opened_at": None if opened_at is None else iso(opened_at),
        },
        "open_attempts": state.open_attempts,
    }


def _route(route: NetworkRoute) -> RouteView:
    return {
        "operation": sorted(each.value for each in route.operations),
        "nw": sorted(route.nws),
    }


def _health(health: Health) -> HealthView:
    return {"ok": health.ok, "detail": health.detail}
