"""What production mode changes in the parts of a gateway, and what is there without it.

Source: D32, D39.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from aiohttp.typedefs import Handler as WebHandler

from sandbox_sim.bootstrap.networks import refuse_dropped
from sandbox_sim.domain.clients import Client, ServiceMode
from sandbox_sim.domain.jobs import LIVE_KINDS, Job, JobKind
from sandbox_sim.domain.response_codes import Reply
from sandbox_sim.gateway.activity_log import ActivityLog
from sandbox_sim.gateway.callbacks.callback_dispatcher import CallbackDispatcher
from sandbox_sim.gateway.control.measurements import Metering
from sandbox_sim.gateway.networks.network_overview import NetworkOverview
from sandbox_sim.gateway.networks.registry import Networks
from sandbox_sim.gateway.payments.submit import Payments
from sandbox_sim.gateway.ports import Clock, PaymentProcessor, Store, Unit
from sandbox_sim.gateway.scheduler import Handler
from sandbox_sim.web.api.operations import Call
from sandbox_sim.web.control.handlers import RouteGroup
from sandbox_sim.web.control.health import HealthRoutes
from sandbox_sim.web.metrics import MetricRoutes
from sandbox_sim.web.networks.overview import NetworkRoutes
from sandbox_sim.web.routes import Route

if TYPE_CHECKING:
    from sandbox_sim.bootstrap.production_parts import Production
    from sandbox_sim.gateway.networks.manual_actions import LiveActions


def live_handlers(production: "Production | None") -> Mapping[JobKind, Handler]:
    """The handlers of the jobs of production.

    Without production, jobs that an earlier run left just end: the start has made sure that no
    attempt is open.
    """
    if production is None:
        return dict.fromkeys(LIVE_KINDS - {JobKind.DELIVER_LIVE}, _end)
    return production.job_handlers()


def processors_of(
    sandbox: PaymentProcessor, production: "Production | None"
) -> Mapping[ServiceMode, PaymentProcessor]:
    """The payment processor of each mode that is served."""
    if production is None:
        return {ServiceMode.SANDBOX: sandbox}
    return {ServiceMode.SANDBOX: sandbox, ServiceMode.PRODUCTION: production.processor}


def live_paths(
    production: "Production | None", payments: Payments
) -> Mapping[str, Callable[[Call], Awaitable[Reply]]]:
    """What the paths of the interface do for clients of mode P; empty without production."""
    return {} if production is None else production.live_paths(payments)


def health_groups(
    production: "Production | None",
    store: Store,
    clock: Clock,
    activity: ActivityLog,
    callbacks: CallbackDispatcher,
) -> Sequence[RouteGroup]:
    """The routes that say whether this gateway and its networks work."""
    overview = NetworkOverview(
        store, production.networks if production else Networks([], [], clock)
    )
    metering = Metering(store, clock, activity, callbacks, overview)
    return [HealthRoutes(store, clock), NetworkRoutes(overview), MetricRoutes(metering)]


def notification_handler(production: "Production | None") -> WebHandler | None:
    """Takes the notifications of networks; None without production."""
    return None if production is None else production.notification_handler()


def live_actions(production: "Production | None") -> "LiveActions | None":
    """What a person may do by hand in production; None without it."""
    return None if production is None else production.actions


def control_routes(
    production: "Production | None", groups: Iterable[RouteGroup], clients: Iterable[Client]
) -> list[Route]:
    """The routes of the control API; in production those that could falsify money are guarded."""
    routes = [route for group in groups for route in group.routes()]
    return routes if production is None else production.guarded(routes, clients)


@asynccontextmanager
async def running(production: "Production | None", store: Store) -> AsyncIterator[None]:
    """Run production, if it is on.

    Raises `NetworkConfigError` if attempts are open at a network that is not configured.
    """
    if production is None:
        await refuse_dropped(store, {})
        yield
        return
    async with production.running():
        yield


async def _end(_unit: Unit, _job: Job, _now: datetime) -> None:
    """Do nothing, so that the job ends."""
