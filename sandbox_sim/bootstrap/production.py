"""The parts of production mode, and their life beside the server. Source: D32, D39."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Final

from aiohttp.typedefs import Handler as WebHandler

from sandbox_sim.bootstrap.networks import networks_of, refuse_dropped
from sandbox_sim.config import Settings
from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.clients import Client, ServiceMode, is_only_live
from sandbox_sim.domain.jobs import LIVE_KINDS, Job, JobKind
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.domain.response_codes import Reply
from sandbox_sim.gateway.activity_log import ActivityLog
from sandbox_sim.gateway.callbacks.callback_dispatcher import CallbackDispatcher
from sandbox_sim.gateway.control.measurements import Metering
from sandbox_sim.gateway.networks.live_queries import LiveQueries
from sandbox_sim.gateway.networks.live_records import LiveRecords
from sandbox_sim.gateway.networks.live_sms import LiveSms
from sandbox_sim.gateway.networks.manual_actions import LiveActions
from sandbox_sim.gateway.networks.network_events import ExchangeLog, NetworkEventSink
from sandbox_sim.gateway.networks.network_overview import NetworkOverview
from sandbox_sim.gateway.networks.notifications import NetworkNotifications
from sandbox_sim.gateway.networks.outcome_recorder import OutcomeRecorder
from sandbox_sim.gateway.networks.processor import NetworkProcessor
from sandbox_sim.gateway.networks.registry import Networks
from sandbox_sim.gateway.networks.status_asking import StatusAsking
from sandbox_sim.gateway.payments.submit import Payments
from sandbox_sim.gateway.ports import Clock, Ids, PaymentProcessor, Store, Unit
from sandbox_sim.gateway.scheduler import Handler
from sandbox_sim.web.api.live_operations import LiveOperations
from sandbox_sim.web.api.operations import Call
from sandbox_sim.web.control.handlers import RouteGroup
from sandbox_sim.web.control.health import HealthRoutes
from sandbox_sim.web.metrics import MetricRoutes
from sandbox_sim.web.networks.notifications import NotificationHandler
from sandbox_sim.web.networks.overview import NetworkRoutes
from sandbox_sim.web.networks.production_guard import guarded
from sandbox_sim.web.routes import Route

# Real time, in seconds, that submits under way have to end when the server stops.
CLOSING_S: Final = 10.0


class Production:
    """What the flag `--production` adds.

    Raises `NetworkConfigError` where a network cannot be made.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        ids: Ids,
        store: Store,
        callback_for: Callable[[Transaction, datetime], Callback],
    ) -> None:
        self._store = store
        self.networks = networks_of(settings, clock, ids)
        self.recorder = OutcomeRecorder(self.networks, ids, callback_for)
        self.processor = NetworkProcessor(store, clock, ids, self.networks, self.recorder)
        self.asking = StatusAsking(store, clock, self.networks, self.recorder)
        self.notifications = NetworkNotifications(store, clock, self.networks, self.recorder)
        self.sms = LiveSms(
            store, clock, ids, self.networks, self.recorder, frozenset(settings.approved_senders)
        )
        self.exchanges = ExchangeLog(store, clock)
        self.queries = LiveQueries(store)
        self.actions = LiveActions(store, clock, self.recorder)
        self.records = LiveRecords(store, clock, self.networks)
        self.clock = clock

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the networks open. Raises `NetworkConfigError` if one with open attempts is gone."""
        await refuse_dropped(self._store, self.networks.by_name)
        await self.networks.open(self._events_of)
        saving = asyncio.create_task(self.exchanges.run_forever())
        try:
            yield
        finally:
            await self.processor.close(CLOSING_S)
            await self.asking.background.close()
            await self.asking.rechecks.close()
            await self.notifications.background.close()
            await self.sms.background.close()
            await self.networks.close()
            saving.cancel()
            await asyncio.gather(saving, return_exceptions=True)
            await self.exchanges.save()

    def _events_of(self, network: str) -> NetworkEventSink:
        return NetworkEventSink(network, self.exchanges, self.notifications)


def live_handlers(production: Production | None) -> Mapping[JobKind, Handler]:
    """The handlers of the jobs of production.

    Without production, jobs that an earlier run left just end: the start has made sure that no
    attempt is open.
    """
    if production is None:
        return dict.fromkeys(LIVE_KINDS - {JobKind.DELIVER_LIVE}, _end)
    return {
        JobKind.ASK_NETWORK: production.asking.on_due,
        JobKind.READ_NOTIFICATION: production.notifications.on_due,
        JobKind.RECHECK_FINAL: production.asking.on_recheck,
        JobKind.SEND_SMS: production.sms.on_due,
    }


def processors_of(
    sandbox: PaymentProcessor, production: Production | None
) -> Mapping[ServiceMode, PaymentProcessor]:
    """The payment processor of each mode that is served."""
    if production is None:
        return {ServiceMode.SANDBOX: sandbox}
    return {ServiceMode.SANDBOX: sandbox, ServiceMode.PRODUCTION: production.processor}


def live_paths(
    production: Production | None, payments: Payments
) -> Mapping[str, Callable[[Call], Awaitable[Reply]]]:
    """What the paths of the interface do for clients of mode P; empty without production."""
    if production is None:
        return {}
    return LiveOperations(payments, production.queries, production.sms).by_path()


def health_groups(
    production: Production | None,
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


def notification_handler(production: Production | None) -> WebHandler | None:
    """Takes the notifications of networks; None without production."""
    if production is None:
        return None
    return NotificationHandler(production.notifications, production.clock).handle


def live_actions(production: Production | None) -> LiveActions | None:
    """What a person may do by hand in production; None without it."""
    return None if production is None else production.actions


def control_routes(
    production: Production | None, groups: Iterable[RouteGroup], clients: Iterable[Client]
) -> list[Route]:
    """The routes of the control API; in production those that could falsify money are guarded."""
    routes = [route for group in groups for route in group.routes()]
    return routes if production is None else guarded(routes, partial(is_only_live, tuple(clients)))


@asynccontextmanager
async def running(production: Production | None, store: Store) -> AsyncIterator[None]:
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
