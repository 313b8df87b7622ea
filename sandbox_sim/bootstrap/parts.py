"""Every part of a gateway, and the parts that it needs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from aiohttp import web

from sandbox_sim.adapters.callback_sender import HttpCallbackSender
from sandbox_sim.adapters.descriptors import current_limit, divide_descriptors
from sandbox_sim.adapters.people import FakePeople
from sandbox_sim.bootstrap.control_routes import route_groups
from sandbox_sim.bootstrap.page_parts import PageParts
from sandbox_sim.bootstrap.production import (
    control_routes,
    live_handlers,
    live_paths,
    notification_handler,
    processors_of,
    running,
)
from sandbox_sim.bootstrap.rule_settings import (
    approval_of,
    facts_of,
    rate_limit_of,
    sandbox_of,
)
from sandbox_sim.config import Settings
from sandbox_sim.domain.callbacks.callbacks import Schedule
from sandbox_sim.domain.jobs import JobKind
from sandbox_sim.domain.payments.payment_rules import Sandbox
from sandbox_sim.gateway.activity_log import ActivityLog
from sandbox_sim.gateway.callbacks.callback_dispatcher import CallbackDispatcher
from sandbox_sim.gateway.callbacks.callback_reordering import CallbackReordering
from sandbox_sim.gateway.control.callback_retries import CallbackRetries
from sandbox_sim.gateway.control.clock_control import ClockControl
from sandbox_sim.gateway.control.event_feed import Feed
from sandbox_sim.gateway.control.event_publishing_store import EventPublishingStore
from sandbox_sim.gateway.control.fault_selection import Faults
from sandbox_sim.gateway.control.journal import Journal
from sandbox_sim.gateway.control.manual_actions import ManualActions
from sandbox_sim.gateway.control.override_selection import Overrides
from sandbox_sim.gateway.control.record_ids import RecordIds
from sandbox_sim.gateway.control.record_search import Records
from sandbox_sim.gateway.control.seeding import Seeding
from sandbox_sim.gateway.control.user_rules import UserRules
from sandbox_sim.gateway.control.wait_for_change import ChangeWaiter
from sandbox_sim.gateway.control.wait_for_records import Waiters
from sandbox_sim.gateway.id_allocation import IdAllocation
from sandbox_sim.gateway.ledger.accounts import Accounts
from sandbox_sim.gateway.payments.queries import Queries
from sandbox_sim.gateway.payments.sandbox_processor import SandboxProcessor
from sandbox_sim.gateway.payments.settlement import CallbackSettings, Settlement
from sandbox_sim.gateway.payments.submit import Payments
from sandbox_sim.gateway.ports import AnswerGate, CallbackSender, Clock, Ids, Relay, Store
from sandbox_sim.gateway.scheduler import Handler, Scheduler
from sandbox_sim.gateway.sms import Sms
from sandbox_sim.web.api.authentication import Authentication
from sandbox_sim.web.api.dispatcher import Dispatcher
from sandbox_sim.web.api.fault_injection import FaultInjection
from sandbox_sim.web.api.operations import Operations, by_path
from sandbox_sim.web.app import ROUTES, make_app
from sandbox_sim.web.control.access import Guard, Hosts
from sandbox_sim.web.control.events import EventRoutes
from sandbox_sim.web.control.inbox import InboxRoutes
from sandbox_sim.web.control.send_request import SendRoutes
from sandbox_sim.web.openapi.routes import OpenapiRoutes
from sandbox_sim.web.public_address import PublicAddress
from sandbox_sim.web.routes import Route
from sandbox_sim.web.transport.client_connections import ClientConnections

if TYPE_CHECKING:
    from sandbox_sim.bootstrap.production_parts import Production


class Parts:
    """The parts of one gateway, each made when it is first used."""

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
        self.http_sender = HttpCallbackSender(clock, settings.receivers(), trusted=settings.trusted)
        self.sender = sender or self.http_sender
        self.clients = settings.clients()
        self.connections = divide_descriptors(current_limit())
        self.feed = Feed(clock, ids.token()[:8], relay)
        self.waiters = Waiters(clock, relay)
        self.store = EventPublishingStore(store, self.feed, clock, self.waiters)
        self.production: Production | None = None
        if settings.production:
            from sandbox_sim.bootstrap import production_parts  # noqa: PLC0415 -- serve starts without it

            callback_for = self.settlement.callback_for
            self.production = production_parts.Production(
                settings, clock, ids, self.store, callback_for
            )

    def app(self) -> web.Application:
        """The application; it starts and stops the background tasks with itself."""
        api_routes = self.operations().routes()
        dispatcher = self.dispatcher(api_routes)
        events = EventRoutes(self.feed, self.clock)
        app = make_app(
            dispatcher,
            api_routes,
            lambda: control_routes(
                self.production,
                [
                    *route_groups(self),
                    SendRoutes(dispatcher, self.clients.values()),
                    events,
                    OpenapiRoutes(app[ROUTES], facts_of(self.settings)),
                ],
                self.clients.values(),
            ),
            Guard(self.settings.token, Hosts(self.settings.host, self.settings.listed_hosts())),
            self.pages.browser_pages(dispatcher.paths),
            self.pages.templates,
            clients=ClientConnections(self.connections.clients, self.clock),
            drain=self.deliveries.close,
            base_path=self.settings.base_path,
            max_body_bytes=self.settings.max_body_bytes,
            fast_path=self.settings.fast_path,
            notified=notification_handler(self.production),
        )
        app.on_shutdown.append(self.fault_injection.stop)
        app.on_shutdown.append(events.end)
        app.cleanup_ctx.append(self.background)
        return app

    def dispatcher(self, routes: Sequence[Route]) -> Dispatcher:
        """Answers the paths of the interface."""
        return Dispatcher(
            Authentication(self.clients.values(), self.clock, rate_limit_of(self.settings)),
            by_path(routes, live_paths(self.production, self.payments)),
            self.gate,
            self.ids,
            self.clock,
            self.journal,
            Faults(self.store, self.user_rules, self.ids),
            self.fault_injection,
            activity=self.activity,
            public_address=self.public_address,
            base_path=self.settings.base_path,
            reject_status=self.settings.sandbox_reject_status,
        )

    async def background(self, _app: web.Application) -> AsyncIterator[None]:
        """Open the store, load what is copied from it, and run the loops while the app runs."""
        await self.store.open()
        try:
            await self.id_allocation.reserve()
            await self.clock_control.start()
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

    def inbox_routes(self) -> InboxRoutes:
        """The inboxes; a browser sees their messages as a page."""
        view = self.pages.inbox.view
        return InboxRoutes(self.store, self.clock, self.ids, self.records, self.clients, view)

    def operations(self) -> Operations:
        """The twelve operations."""
        return Operations(
            self.payments,
            Queries(self.store, self.clock, self.accounts),
            self.sms,
            self.overrides,
            card_entry=self.settings.sandbox_card_entry,
        )

    @cached_property
    def payments(self) -> Payments:
        """The six payment operations."""
        processors = processors_of(self.sandbox_processor, self.production)
        return Payments(self.store, self.ids, self.gate, processors)

    def seeding(self) -> Seeding:
        """Fills services with made-up payments and SMS."""
        return Seeding(
            self.store,
            self.clock,
            FakePeople(self.sandbox, self.settings.approved_senders),
            self.accounts,
            self.sandbox_processor,
            self.settlement,
            self.sms,
            self.clients,
            settle_delay=self.settle_delay,
            transition=self.transition,
        )

    @cached_property
    def jobs(self) -> Scheduler:
        """Runs the jobs; each kind has its handler here."""
        handlers: dict[JobKind, Handler] = {
            JobKind.SETTLE: self.settlement.on_due,
            JobKind.SETTLE_SMS: self.sms.on_due,
            JobKind.DELIVER: self.deliveries.take,
            JobKind.RELEASE: self.callback_reordering.on_due,
            JobKind.DELIVER_LIVE: self.deliveries.take,
            **live_handlers(self.production),
        }
        return Scheduler(self.store, self.clock, self.deliveries, handlers)

    @cached_property
    def deliveries(self) -> CallbackDispatcher:
        """Sends the callbacks."""
        schedule = Schedule(
            attempts=self.settings.callback_attempts,
            interval=timedelta(seconds=self.settings.callback_retry_interval_s),
            timeout=timedelta(seconds=self.settings.callback_timeout_s),
        )
        return CallbackDispatcher(
            self.store,
            self.clock,
            self.sender,
            schedule,
            self.gate,
            self.settings.callback_routes(),
            self.callback_reordering,
            self.connections.callbacks,
            activity=self.activity,
        )

    @cached_property
    def activity(self) -> ActivityLog:
        """Which events get a log line."""
        return ActivityLog(self.clock, quiet=self.settings.quiet)

    @cached_property
    def sandbox_processor(self) -> SandboxProcessor:
        """Payments of mode S."""
        return SandboxProcessor(
            self.ids,
            self.accounts,
            self.gate,
            self.overrides,
            self.settlement,
            sandbox=self.sandbox,
            settle_delay=self.settle_delay,
            auto_complete=timedelta(milliseconds=self.settings.card_auto_complete_ms),
            approval=approval_of(self.settings),
        )

    @cached_property
    def settlement(self) -> Settlement:
        """Begins and ends transactions."""
        return Settlement(self.ids, self.accounts, self.clients, self.callback_settings)

    @cached_property
    def callback_settings(self) -> CallbackSettings:
        """How callbacks are written."""
        return CallbackSettings(
            self.settings.callback_profile,
            self.settings.callback_profiles,
            self.settings.sign_callbacks,
        )

    @cached_property
    def sms(self) -> Sms:
        """The four operations of SMS."""
        return Sms(
            self.store,
            self.clock,
            self.ids,
            self.accounts,
            allowlist=self.sandbox.allowlist,
            approved_senders=frozenset(self.settings.approved_senders),
            transition=self.transition,
        )

    @cached_property
    def accounts(self) -> Accounts:
        """Balances, fixed or live."""
        return Accounts(
            live=self.settings.balances == "live",
            sms_initial_units=self.settings.sms_initial_units,
        )

    @cached_property
    def sandbox(self) -> Sandbox:
        """The settings of the sandbox rules."""
        return sandbox_of(self.settings)

    @cached_property
    def pages(self) -> PageParts:
        """The pages for people."""
        return PageParts(self)

    @cached_property
    def overrides(self) -> Overrides:
        """Applies the overrides of users."""
        return Overrides(self.store, self.user_rules, self.waiters)

    @cached_property
    def user_rules(self) -> UserRules:
        """The overrides and faults of users."""
        return UserRules(self.store, self.clock, self.ids)

    @cached_property
    def callback_reordering(self) -> CallbackReordering:
        """Releases the callbacks that an override holds."""
        return CallbackReordering(self.store)

    @cached_property
    def fault_injection(self) -> FaultInjection:
        """Applies faults to answers."""
        return FaultInjection(self.clock)

    @cached_property
    def journal(self) -> Journal:
        """The journal of requests."""
        return Journal(self.store, self.clock)

    @cached_property
    def watch(self) -> ChangeWaiter:
        """Waits for changes; for tests in this process."""
        return ChangeWaiter(self.store, self.clock)

    @cached_property
    def id_allocation(self) -> IdAllocation:
        """Reserves the numbers that ids are made from."""
        return IdAllocation(self.store, self.clock, self.ids)

    @cached_property
    def clock_control(self) -> ClockControl:
        """Sets the clock."""
        return ClockControl(self.store, self.clock, self.jobs)

    @cached_property
    def records(self) -> Records:
        """Searches over what the gateway has done."""
        return Records(self.store, self.journal, self.waiters, self.clock)

    @cached_property
    def record_ids(self) -> RecordIds:
        """Which record an id names."""
        return RecordIds(self.records)

    @cached_property
    def callback_retries(self) -> CallbackRetries:
        """Next attempts that come now."""
        return CallbackRetries(self.store, self.clock, self.records, self.record_ids)

    @cached_property
    def manual_actions(self) -> ManualActions:
        """Settles, resends and resets by hand."""
        return ManualActions(self.store, self.clock, self.journal, self.settlement, self.deliveries)

    @cached_property
    def public_address(self) -> PublicAddress:
        """The address that this server is reached at."""
        return PublicAddress(self.settings.public_url, self.settings.base_path)

    @cached_property
    def settle_delay(self) -> timedelta:
        """Gateway time from the 202 to the success."""
        return timedelta(milliseconds=self.settings.settle_delay_ms)

    @cached_property
    def transition(self) -> timedelta:
        """Gateway time of an SMS from ACKNOWLEDGED to SENT."""
        return timedelta(milliseconds=self.settings.sms_transition_ms)
