"""The parts of production mode, and its networks.

Imported only where it is on, so that serve starts faster. Source: D39, D32.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from aiohttp.typedefs import Handler

from sandbox_sim.control.record_search import RecordSearch
from sandbox_sim.control.scheduler import JobHandler
from sandbox_sim.ledger.books import Books
from sandbox_sim.ledger.periods import Periods
from sandbox_sim.payments.queries import LiveQueries
from sandbox_sim.payments.submit import Payments
from sandbox_sim.ports import Clock, Ids, Store
from sandbox_sim.ports.network import Network
from sandbox_sim.production.attempt_views import LiveRecordReader
from sandbox_sim.production.live_sms import LiveSms
from sandbox_sim.production.manual_actions import ManualSettlements
from sandbox_sim.production.network_overview import NetworkOverview
from sandbox_sim.production.notifications import ExchangeLog, NetworkEventSink, NetworkNotifications
from sandbox_sim.production.outcome_recorder import OutcomeRecorder
from sandbox_sim.production.processor import NetworkProcessor
from sandbox_sim.production.registry import ConfiguredNetwork, Networks
from sandbox_sim.production.status_asking import StatusAsking
from sandbox_sim.records.attempts import Terms
from sandbox_sim.records.callbacks import CallbackRecord
from sandbox_sim.records.jobs import JobKind
from sandbox_sim.records.transactions import TransactionRecord
from sandbox_sim.settings.networks import NetworkTable, make_networks
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.clients import Client, is_only_live
from sandbox_sim.web.api.live_operations import LiveOperations
from sandbox_sim.web.api.operations import PathHandler
from sandbox_sim.web.control.networks import NotificationHandler
from sandbox_sim.web.control.production_guard import guard_routes
from sandbox_sim.web.routes import Route

log = logging.getLogger("sandbox_sim.networks")

# How long submits under way may take to end when the server stops, in seconds of real time.
CLOSING_S: Final = 10.0


class Production:
    """The parts that the flag `--production` adds.

    Raises `NetworkConfigError` where a network cannot be made.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        ids: Ids,
        store: Store,
        callback_for: Callable[[TransactionRecord, datetime], CallbackRecord],
    ) -> None:
        self._store = store
        self.networks = networks_of(settings, clock, ids)
        self.recorder = OutcomeRecorder(self.networks, ids, callback_for)
        self.processor = NetworkProcessor(store, clock, ids, self.networks, self.recorder)
        self.asking = StatusAsking(store, clock, self.networks, self.recorder)
        self.notifications = NetworkNotifications(
            store,
            clock,
            self.networks,
            self.recorder,
            timedelta(days=settings.keep_notifications_days),
        )
        self.sms = LiveSms(
            store, clock, ids, self.networks, self.recorder, frozenset(settings.approved_senders)
        )
        self.exchanges = ExchangeLog(store, clock)
        self.queries = LiveQueries(store)
        self.actions = ManualSettlements(store, clock, self.networks, self.asking, self.recorder)
        self.records = LiveRecordReader(store, clock, self.networks)
        self.books = Books(store, clock, self.networks.by_name.keys())
        self.periods = Periods(store, clock)
        self.clock = clock

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the networks open while the context lasts."""
        warn_of_sandboxes(self.networks.by_name.values())
        await self.asking.reschedule_late_queries()
        await self.sms.ask_about_restored()
        await self.networks.open(
            lambda network: NetworkEventSink(network, self.exchanges, self.notifications)
        )
        loops = self.exchanges, self.notifications, self.asking
        tasks = [asyncio.create_task(each.run_forever()) for each in loops]
        try:
            yield
        finally:
            await asyncio.gather(self.processor.close(CLOSING_S), self.sms.close(CLOSING_S))
            await self.asking.background.close()
            await self.asking.rechecks.close()
            await self.notifications.background.close()
            await self.networks.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.exchanges.save()

    def overview(self) -> NetworkOverview:
        """What the pages and the control API show of the networks."""
        return NetworkOverview(self._store, self.networks, self.notifications.dropped)

    def job_handlers(self) -> Mapping[JobKind, JobHandler]:
        return {
            JobKind.ASK_NETWORK: self.asking.background.on_due,
            JobKind.READ_NOTIFICATION: self.notifications.background.on_due,
            JobKind.RECHECK_FINAL: self.asking.rechecks.on_due,
            JobKind.SEND_SMS: self.sms.background.on_due,
        }

    def live_paths(self, payments: Payments) -> Mapping[str, PathHandler]:
        """What the paths of the interface do for clients of mode P."""
        return LiveOperations(payments, self.queries, self.sms).by_path()

    def notification_handler(self) -> Handler:
        """Takes the notifications of networks."""
        return NotificationHandler(self.notifications, self.clock).handle

    def guarded(
        self, routes: Sequence[Route], clients: Iterable[Client], records: RecordSearch
    ) -> list[Route]:
        """The routes; those that could falsify money refuse records and services of mode P."""
        return guard_routes(routes, partial(is_only_live, tuple(clients)), records)


def networks_of(settings: Settings, clock: Clock, ids: Ids) -> Networks:
    """The networks of the settings, not open yet.

    Raises `NetworkConfigError` with a line for each network that cannot be made.
    """
    adapters = make_networks(settings.networks, clock, ids)
    networks = [_configured(name, settings.networks[name], each) for name, each in adapters.items()]
    return Networks(networks, [table.route for table in settings.routes], clock)


def _configured(name: str, table: NetworkTable, network: Network) -> ConfiguredNetwork:
    capabilities = network.capabilities
    schedule = table.schedule
    if capabilities.decides_within is not None:
        schedule = replace(schedule, give_up_after=capabilities.decides_within)
    terms = Terms(
        schedule=schedule,
        always_sent=capabilities.always_sent,
        failure_grace=timedelta(seconds=table.failure_grace_s),
        has_status=capabilities.has_status,
        recheck_for=timedelta(days=table.recheck_days),
        repeats_within=capabilities.repeats_within,
        timeout=timedelta(seconds=table.timeout_s),
    )
    return ConfiguredNetwork(name, table.adapter, network, terms)


def warn_of_sandboxes(networks: Iterable[ConfiguredNetwork]) -> None:
    """Log a warning for each currency that a network replaces by another (D41)."""
    for each in networks:
        for asked, sent in each.network.capabilities.sent_as.items():
            log.warning(
                "network %s is a sandbox, where no money moves: payments in %s go out in %s with "
                "the same figures",
                *(each.name, asked, sent),
            )
