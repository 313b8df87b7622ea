"""The parts of production mode; imported only where it is on, so that serve starts faster."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Final

from aiohttp.typedefs import Handler as WebHandler

from sandbox_sim.bootstrap.networks import networks_of, refuse_dropped
from sandbox_sim.config import Settings
from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.clients import Client, is_only_live
from sandbox_sim.domain.jobs import JobKind
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.gateway.networks.live_queries import LiveQueries
from sandbox_sim.gateway.networks.live_records import LiveRecords
from sandbox_sim.gateway.networks.live_sms import LiveSms
from sandbox_sim.gateway.networks.manual_actions import LiveActions
from sandbox_sim.gateway.networks.network_events import ExchangeLog, NetworkEventSink
from sandbox_sim.gateway.networks.notifications import NetworkNotifications
from sandbox_sim.gateway.networks.outcome_recorder import OutcomeRecorder
from sandbox_sim.gateway.networks.processor import NetworkProcessor
from sandbox_sim.gateway.networks.status_asking import StatusAsking
from sandbox_sim.gateway.payments.submit import Payments
from sandbox_sim.gateway.ports import Clock, Ids, Store
from sandbox_sim.gateway.scheduler import Handler
from sandbox_sim.web.api.live_operations import Handler as PathHandler, LiveOperations
from sandbox_sim.web.networks.notifications import NotificationHandler
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

    def job_handlers(self) -> Mapping[JobKind, Handler]:
        """The handlers of the jobs of production."""
        return {
            JobKind.ASK_NETWORK: self.asking.on_due,
            JobKind.READ_NOTIFICATION: self.notifications.on_due,
            JobKind.RECHECK_FINAL: self.asking.on_recheck,
            JobKind.SEND_SMS: self.sms.on_due,
        }

    def live_paths(self, payments: Payments) -> Mapping[str, PathHandler]:
        """What the paths of the interface do for clients of mode P."""
        return LiveOperations(payments, self.queries, self.sms).by_path()

    def notification_handler(self) -> WebHandler:
        """Takes the notifications of networks."""
        return NotificationHandler(self.notifications, self.clock).handle

    def guarded(self, routes: Sequence[Route], clients: Iterable[Client]) -> list[Route]:
        """The routes, of which those that could falsify money are refused for mode P."""
        return guarded(routes, partial(is_only_live, tuple(clients)))

    def _events_of(self, network: str) -> NetworkEventSink:
        return NetworkEventSink(network, self.exchanges, self.notifications)
