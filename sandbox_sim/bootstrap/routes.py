"""The routes under `/_sandbox/` and the pages for people, and what each of them needs.

Imported when a request first asks for one of them.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from sandbox_sim.adapters.people import FakePeople
from sandbox_sim.callbacks import doctor
from sandbox_sim.control.manual_actions import Snapshots
from sandbox_sim.control.measurements import Metering
from sandbox_sim.control.record_search import OpenTransactions
from sandbox_sim.control.seeding import Seeding
from sandbox_sim.ledger.ledger_control import Ledger
from sandbox_sim.payments.approval import Handsets
from sandbox_sim.payments.card_page import CardPages
from sandbox_sim.ports import FileStore
from sandbox_sim.production.network_overview import NetworkOverview
from sandbox_sim.production.registry import Networks
from sandbox_sim.records.overrides import UserRuleKind
from sandbox_sim.settings.schema import certify_report
from sandbox_sim.values.clients import SANDBOX_CLIENT
from sandbox_sim.values.hosts import is_postgres
from sandbox_sim.web.app import DISPATCHER, ROUTES
from sandbox_sim.web.control.access import Guard
from sandbox_sim.web.control.application import ControlApi
from sandbox_sim.web.control.callbacks import CallbackActionRoutes
from sandbox_sim.web.control.clock import ClockRoutes
from sandbox_sim.web.control.config import ConfigRoutes
from sandbox_sim.web.control.events import EventRoutes, ListenRoutes
from sandbox_sim.web.control.health import HealthRoutes
from sandbox_sim.web.control.inbox import InboxRoutes
from sandbox_sim.web.control.ledger import LedgerRoutes
from sandbox_sim.web.control.networks import NetworkRoutes
from sandbox_sim.web.control.overrides_and_faults import (
    FaultBody,
    FaultView,
    OverrideBody,
    OverrideView,
    UserRuleRoutes,
)
from sandbox_sim.web.control.records import RecordRoutes
from sandbox_sim.web.control.send_request import SendRoutes
from sandbox_sim.web.control.state import StateRoutes
from sandbox_sim.web.control.transactions import TransactionActionRoutes
from sandbox_sim.web.openapi.routes import OpenapiRoutes, ServerFacts
from sandbox_sim.web.pages.browser_pages import BrowserPages, StaticRoutes
from sandbox_sim.web.pages.card_page import CardPageRoutes
from sandbox_sim.web.pages.dashboard import DashboardRoutes, views_of
from sandbox_sim.web.pages.details import Details
from sandbox_sim.web.pages.handset import HandsetCodes, HandsetRoutes
from sandbox_sim.web.pages.listing import RecordLists
from sandbox_sim.web.pages.login import Invitations, LoginRoutes
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import Route, RouteGroup

if TYPE_CHECKING:
    from sandbox_sim.bootstrap.parts import Gateway
    from sandbox_sim.production.attempt_views import LiveRecordReader


class ControlParts:
    """The control API and the pages of one gateway, made from its other parts."""

    def __init__(self, parts: "Gateway") -> None:
        self._parts = parts
        self.templates = Templates(
            parts.settings.base_path, self._navigation, parts.settings.allowed_hosts
        )
        self.files = StaticRoutes(self.templates, certify_report)
        self.invitations = Invitations()

    def _navigation(self) -> Mapping[str, object]:
        return {
            "views": views_of(production=self._parts.production is not None),
            "number": self._parts.behaviour.present.sample_number,
        }

    @cached_property
    def api(self) -> ControlApi:
        """Answers the requests to the control API."""
        parts = self._parts
        production = parts.production
        return ControlApi(
            self._routes(),
            Guard(parts.settings.token, parts.allowed_hosts),
            parts.prefixes,
            production.notification_handler() if production else None,
            self.templates,
            parts.store_failures,
        )

    @cached_property
    def browser_pages(self) -> BrowserPages:
        """Answers browsers outside the control API."""
        paths = self._parts.app[DISPATCHER]().paths
        return BrowserPages(self._parts.settings.base_path, paths, self.templates, self.files)

    def _routes(self) -> list[Route]:
        """The table of routes; in production those that could falsify money are guarded."""
        parts = self._parts
        routes = [route for group in self._groups() for route in group.routes()]
        if parts.production is None:
            return routes
        return parts.production.guarded(routes, parts.clients.values(), parts.records)

    def _groups(self) -> Sequence[RouteGroup]:
        parts = self._parts
        production, live_records = parts.production, self._live_records
        books, periods = (production.books, production.periods) if production else (None, None)
        rules = parts.user_rules
        return [
            *self._health(),
            RecordRoutes(parts.records, parts.record_ids, self._open_transactions, live_records),
            TransactionActionRoutes(
                parts.record_ids,
                parts.manual_actions,
                parts.refunds,
                parts.clock,
                parts.public_address,
                live_actions=production.actions if production else None,
                live_records=live_records,
                asking=production.asking if production else None,
            ),
            CallbackActionRoutes(
                parts.callback_retries,
                parts.manual_actions,
                parts.record_ids,
                self._receiver_examination,
            ),
            self._inboxes(),
            ClockRoutes(parts.clock, parts.clock_control),
            ConfigRoutes(parts.behaviour_control, parts.running_settings),
            UserRuleRoutes(rules, UserRuleKind.OVERRIDE, "overrides", OverrideBody, OverrideView),
            UserRuleRoutes(rules, UserRuleKind.FAULT, "faults", FaultBody, FaultView),
            LedgerRoutes(self._ledger, parts.record_ids, books, periods),
            self._state(),
            *self._pages(),
            SendRoutes(parts.app[DISPATCHER](), parts.clients.values()),
            EventRoutes(parts.feed, parts.clock, parts.store, shared=self._shared),
            ListenRoutes(parts.listeners, shared=self._shared),
            OpenapiRoutes(
                parts.app[ROUTES], self._server_facts, self.templates, parts.public_address
            ),
        ]

    def _health(self) -> Sequence[RouteGroup]:
        """The routes that say whether this gateway and its networks work."""
        parts = self._parts
        production, store, clock = parts.production, parts.store, parts.clock
        if production is None:
            overview = NetworkOverview(store, Networks([], [], clock), {})
            networks = NetworkRoutes(overview, None, None)
        else:
            overview = production.overview()
            networks = NetworkRoutes(overview, production.notifications, production.records)
        metering = Metering(store, clock, parts.activity, parts.deliveries, overview)
        return [HealthRoutes(store, clock, metering), networks]

    def _receiver_examination(self) -> doctor.ReceiverExamination:
        """Examines receivers with the sender and the settings that callbacks use."""
        parts = self._parts
        return doctor.ReceiverExamination(
            parts.store,
            parts.sender,
            parts.clock,
            parts.ids,
            parts.clients.values(),
            parts.behaviour,
            parts.settings.callback_routes(),
        )

    def _inboxes(self) -> InboxRoutes:
        """The inboxes; a browser sees their messages as a page."""
        parts = self._parts
        secret_keys = [client.secret_key for client in parts.clients.values()]
        return InboxRoutes(
            parts.store, parts.clock, parts.ids, parts.records, secret_keys, self.templates
        )

    def _state(self) -> StateRoutes:
        parts = self._parts
        return StateRoutes(
            parts.manual_actions,
            Seeding(
                parts.store,
                parts.clock,
                FakePeople,
                parts.accounts,
                parts.sandbox_processor,
                parts.settlement,
                parts.sms,
                parts.clients,
                behaviour=parts.behaviour,
            ),
            Snapshots(parts.store, parts.clock, parts.journal, parts.jobs),
            parts.public_address,
            production=parts.production is not None,
            file=parts.store if isinstance(parts.store, FileStore) else None,
        )

    def _server_facts(self) -> ServerFacts:
        """What the OpenAPI document says about this server."""
        settings = self._parts.settings
        return ServerFacts(
            settings.base_path,
            self._parts.behaviour.present.sandbox_reject_status,
            needs_token=settings.token is not None,
        )

    @property
    def _shared(self) -> bool:
        """Whether other processes can serve the same state."""
        return is_postgres(self._parts.settings.store)

    @cached_property
    def _ledger(self) -> Ledger:
        parts = self._parts
        live = parts.production is not None
        return Ledger(parts.store, parts.clock, parts.accounts, live=live)

    @cached_property
    def _open_transactions(self) -> OpenTransactions:
        return OpenTransactions(self._parts.records, self._parts.clock, self._live_records)

    @property
    def _live_records(self) -> "LiveRecordReader | None":
        """The records of production; None if it is off."""
        return self._parts.production.records if self._parts.production else None

    def _pages(self) -> Sequence[RouteGroup]:
        parts = self._parts
        card_pages = CardPages(parts.store, parts.clock, parts.settlement, parts.behaviour)
        return [
            self._dashboard(),
            CardPageRoutes(
                card_pages, self.templates, parts.behaviour, parts.settings.merchant_names
            ),
            self._handset(),
            LoginRoutes(
                parts.settings.token,
                self.templates,
                self.invitations,
                secured=parts.settings.is_secured,
            ),
            self.files,
        ]

    def _handset(self) -> HandsetRoutes:
        parts, settings = self._parts, self._parts.settings
        return HandsetRoutes(
            Handsets(parts.store, parts.clock, parts.settlement, parts.behaviour),
            parts.feed,
            parts.clock,
            None if self._shared else HandsetCodes(parts.clock, parts.ids),
            self.templates,
            parts.public_address,
            parts.behaviour,
            merchant_names=settings.merchant_names,
            token=settings.token,
            serves_others=settings.serves_others,
            secured=settings.is_secured,
        )

    def _dashboard(self) -> DashboardRoutes:
        parts, settings = self._parts, self._parts.settings
        production, live_records = parts.production, self._live_records
        first = settings.credentials[0].client()
        secret = first.secret_key if first == SANDBOX_CLIENT else "SECRET_KEY"
        return DashboardRoutes(
            self.templates,
            RecordLists(parts.records, self._open_transactions, live_records),
            Details(parts.store, parts.records, self._ledger, live_records),
            self._ledger,
            parts.user_rules,
            parts.store,
            parts.clock,
            parts.behaviour,
            parts.running_settings,
            parts.public_address,
            credentials=f"{first.client_key}:{secret}",
            networks=production.overview() if production else None,
            books=production.books if production else None,
            needs_login=settings.token is not None,
        )
