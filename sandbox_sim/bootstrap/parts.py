"""Every part of a gateway, and the parts that it needs."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from aiohttp import web

from sandbox_sim.adapters.callback_sender import HttpCallbackSender
from sandbox_sim.adapters.process import current_limit, divide_descriptors
from sandbox_sim.callbacks.callback_dispatcher import (
    CallbackDispatcher,
    CallbackReordering,
    CallbackSigning,
)
from sandbox_sim.callbacks.listeners import CallbackListeners
from sandbox_sim.control.clock import ClockControl
from sandbox_sim.control.journal import Journal
from sandbox_sim.control.manual_actions import CallbackRetries, ManualActions
from sandbox_sim.control.record_search import RecordIds, RecordSearch
from sandbox_sim.control.scheduler import JobHandler, Scheduler
from sandbox_sim.events.activity_log import ActivityLog
from sandbox_sim.events.event_feed import ChangePublisher, Feed
from sandbox_sim.events.waits import ChangeWaiter, Waiters
from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.overrides.behaviour import BehaviourControl, BehaviourHolder
from sandbox_sim.overrides.faults import Faults
from sandbox_sim.overrides.overrides import Overrides, UserRules
from sandbox_sim.payments.refunds import Refunds
from sandbox_sim.payments.settlement import Settlement
from sandbox_sim.payments.submit import PaymentProcessor, Payments, SandboxProcessor
from sandbox_sim.ports import (
    AnswerGate,
    CallbackSender,
    Clock,
    Ids,
    NetworkConfigError,
    Relay,
    Store,
    Unit,
)
from sandbox_sim.ports.ids import IdAllocation
from sandbox_sim.production.routing import removed_networks
from sandbox_sim.records.jobs import LIVE_KINDS, Job, JobKind
from sandbox_sim.settings.changes import RunningSettings
from sandbox_sim.settings.schema import Settings
from sandbox_sim.sms.sms import SmsOperations
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.web.api.authentication import AllowedHosts, Authentication
from sandbox_sim.web.api.fault_injection import FaultInjection
from sandbox_sim.web.api.responses import StoreFailures
from sandbox_sim.web.app import make_app
from sandbox_sim.web.transport.client_connections import ClientConnections
from sandbox_sim.web.transport.requests import PublicAddress

if TYPE_CHECKING:
    from sandbox_sim.bootstrap.production_parts import Production
    from sandbox_sim.bootstrap.routes import ControlParts
    from sandbox_sim.web.api.dispatcher import Dispatcher
    from sandbox_sim.web.api.operations import Operations
    from sandbox_sim.web.routes import Route


class Gateway:
    """The parts of one gateway, each made from those above it.

    store: writing to it directly publishes no events.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        ids: Ids,
        store: Store,
        relay: Relay | None,
        gate: AnswerGate,
        sender: CallbackSender | None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.ids = ids
        self.gate = gate
        self.http_sender = HttpCallbackSender(
            clock,
            settings.receivers(),
            trusted=settings.trusted,
            warns_of_public=not settings.production,
        )
        self.sender = sender or self.http_sender
        self.clients = settings.clients()
        self.behaviour = BehaviourHolder(settings.behaviour())
        self.connections = divide_descriptors(current_limit())
        self.feed = Feed(clock, ids.token()[:8], relay)
        self.waiters = Waiters(clock, relay)
        self.store = store
        publisher = ChangePublisher(self.feed, self.waiters, clock)
        store.watch_changes(publisher.readers, publisher.publish)
        self.activity = ActivityLog(clock, quiet=settings.quiet)
        self.journal = Journal(store, clock)
        self.watch = ChangeWaiter(store, clock)
        self.id_allocation = IdAllocation(store, clock, ids)
        self.store_failures = StoreFailures(clock, shown=not settings.serves_others)
        self.public_address = PublicAddress(settings.public_url, settings.base_path)
        self.allowed_hosts = AllowedHosts(settings.host, settings.listed_hosts())
        self.behaviour_control = BehaviourControl(store, self.behaviour)
        self.running_settings = RunningSettings(settings)
        self.user_rules = UserRules(store, clock, ids)
        self.fault_injection = FaultInjection(store, clock, self.user_rules)
        self.overrides = Overrides(store, self.user_rules, self.waiters)
        self.accounts = Accounts(
            live=settings.balances == "live", sms_initial_units=settings.sms_initial_units
        )
        self.settlement = Settlement(ids, self.accounts, self.clients, self.behaviour)
        self.sandbox_processor = SandboxProcessor(
            ids, self.accounts, gate, self.overrides, self.settlement, self.behaviour
        )
        processors: dict[ServiceMode, PaymentProcessor] = {
            ServiceMode.SANDBOX: self.sandbox_processor
        }
        self.production: Production | None = None
        if settings.production:
            from sandbox_sim.bootstrap import production_parts  # noqa: PLC0415 -- serve starts without it

            callback_for = self.settlement.callback_for
            self.production = production_parts.Production(settings, clock, ids, store, callback_for)
            processors[ServiceMode.PRODUCTION] = self.production.processor
        self.payments = Payments(store, ids, gate, processors)
        self.refunds = Refunds(store, clock, ids, processors)
        self.sms = SmsOperations(store, clock, ids, self.accounts, self.behaviour)
        self.callback_reordering = CallbackReordering(store)
        self.listeners = CallbackListeners(clock, ids)
        self.deliveries = CallbackDispatcher(
            store,
            clock,
            self.sender,
            self.behaviour,
            gate,
            settings.callback_routes(),
            self.callback_reordering,
            self.connections.callbacks,
            self.activity,
            CallbackSigning(self.clients, self.behaviour),
            self.listeners,
        )
        handlers: dict[JobKind, JobHandler] = {
            JobKind.SETTLE: self.settlement.on_due,
            JobKind.SETTLE_SMS: self.sms.on_due,
            JobKind.DELIVER: self.deliveries.on_due,
            JobKind.RELEASE: self.callback_reordering.on_due,
            JobKind.DELIVER_LIVE: self.deliveries.on_due,
            **live_handlers(self.production),
        }
        self.jobs = Scheduler(store, clock, self.deliveries, handlers)
        self.clock_control = ClockControl(store, clock, self.jobs)
        self.records = RecordSearch(store, self.journal, self.waiters, clock)
        self.record_ids = RecordIds(self.records)
        self.callback_retries = CallbackRetries(store, clock, self.records, self.record_ids)
        self.manual_actions = ManualActions(store, clock, self.journal, self.settlement, self.jobs)

    @cached_property
    def app(self) -> web.Application:
        """The application; it starts and stops the background tasks with itself."""
        app = make_app(
            lambda: self.dispatcher,
            self.routes,
            lambda: self.control.api,
            lambda: self.control.browser_pages,
            clients=ClientConnections(self.connections.clients, self.clock),
            drain=self.deliveries.close,
            prefixes=self.prefixes,
            max_body_bytes=self.settings.max_body_bytes,
            fast_path=self.settings.fast_path,
            has_networks=self.production is not None,
        )
        app.on_shutdown.append(self.end_streams)
        app.cleanup_ctx.append(self.background)
        return app

    @property
    def prefixes(self) -> Sequence[str]:
        """What the paths of the control API may begin with."""
        return tuple(dict.fromkeys(("", self.settings.base_path)))

    @cached_property
    def control(self) -> "ControlParts":
        """The control API and the pages, imported and made when a request first asks for them."""
        from sandbox_sim.bootstrap.routes import ControlParts  # noqa: PLC0415 -- serve starts without it

        return ControlParts(self)

    @cached_property
    def dispatcher(self) -> "Dispatcher":
        """Answers the paths of the interface; imported and made when the first client connects."""
        from sandbox_sim.web.api.dispatcher import Dispatcher  # noqa: PLC0415 -- serve starts without it
        from sandbox_sim.web.api.operations import by_path  # noqa: PLC0415

        live_paths = self.production.live_paths(self.payments) if self.production else {}
        return Dispatcher(
            Authentication(self.clients.values(), self.clock, self.behaviour),
            by_path(self.routes(), live_paths, self.settings.base_path),
            self.gate,
            self.ids,
            self.clock,
            self.journal,
            Faults(self.store, self.user_rules, self.ids),
            self.fault_injection,
            hosts=self.allowed_hosts,
            store_failures=self.store_failures,
            activity=self.activity,
            public_address=self.public_address,
            behaviour=self.behaviour,
        )

    async def end_streams(self, app: web.Application) -> None:
        """End the answers that would stay open: the server waits for each when it stops."""
        await self.fault_injection.stop(app)
        self.feed.close()
        self.listeners.close()

    async def background(self, _app: web.Application) -> AsyncIterator[None]:
        """Open the store, load the copies kept in memory, and run the loops while the app runs."""
        await self.store.open()
        try:
            await self.id_allocation.reserve()
            await self.clock_control.start()
            await self.behaviour_control.start()
            await self.user_rules.load()
            await self.callback_reordering.load()
            async with self.http_sender, running(self.production, self.store):
                loops = (self.jobs, self.journal, self.id_allocation, self.activity)
                tasks = [asyncio.create_task(each.run_forever()) for each in loops]
                yield
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            self.activity.summarise()
            await self.journal.save()
        finally:
            await self.store.close()

    def routes(self) -> "Sequence[Route]":
        """The routes of the interface."""
        return self.operations.routes()

    @cached_property
    def operations(self) -> "Operations":
        """The twelve operations, imported with the dispatcher."""
        from sandbox_sim.payments.queries import Queries  # noqa: PLC0415
        from sandbox_sim.web.api.operations import Operations  # noqa: PLC0415

        return Operations(
            self.payments,
            Queries(self.store, self.clock, self.accounts),
            self.sms,
            self.overrides,
            self.behaviour,
        )


async def require_networks_of_open_attempts(store: Store, networks: Mapping[str, object]) -> None:
    """Raise `NetworkConfigError` if attempts are open at networks that are not configured."""
    counts = await store.run(lambda unit: unit.open_attempts())
    problems = [
        f"networks.{name}: {count} attempts at it are open, and only this network knows their "
        "outcome; keep its table and production = true until they have ended"
        for name, count in removed_networks(counts, networks).items()
    ]
    if problems:
        raise NetworkConfigError("\n".join(problems))


def live_handlers(production: "Production | None") -> Mapping[JobKind, JobHandler]:
    """The handlers of the jobs of production.

    Without production, jobs that an earlier run left just end: the start has made sure that no
    attempt is open.
    """
    if production is None:
        return dict.fromkeys(LIVE_KINDS - {JobKind.DELIVER_LIVE}, _do_nothing)
    return production.job_handlers()


@asynccontextmanager
async def running(production: "Production | None", store: Store) -> AsyncIterator[None]:
    """Run production, if it is on.

    Raises `NetworkConfigError` if attempts are open at a network that is not configured.
    """
    networks = production.networks.by_name if production else {}
    await require_networks_of_open_attempts(store, networks)
    async with production.running() if production else nullcontext():
        yield


async def _do_nothing(_unit: Unit, _job: Job, _now: datetime) -> None:
    """Do nothing, so that the job ends."""
