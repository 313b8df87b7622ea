"""The routes under `/_sandbox/` and the pages for people, and what each of them needs."""

from collections.abc import Container, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sandbox_sim.bootstrap.production import health_groups
from sandbox_sim.control.open_transactions import OpenTransactions
from sandbox_sim.control.snapshots import Snapshots
from sandbox_sim.ledger.ledger_control import Ledger
from sandbox_sim.payments.approval import Handsets
from sandbox_sim.payments.card_page import CardPages
from sandbox_sim.ports import FileStore
from sandbox_sim.records.overrides import UserRuleKind
from sandbox_sim.settings.schema import certify_report
from sandbox_sim.values.clients import SANDBOX_CLIENT
from sandbox_sim.values.hosts import is_postgres
from sandbox_sim.web.control.asking import AskRoutes
from sandbox_sim.web.control.books import BookRoutes
from sandbox_sim.web.control.callbacks import CallbackActionRoutes
from sandbox_sim.web.control.clock import ClockRoutes
from sandbox_sim.web.control.config import ConfigRoutes
from sandbox_sim.web.control.ledger import LedgerRoutes
from sandbox_sim.web.control.overrides_and_faults import (
    FaultBody,
    FaultView,
    OverrideBody,
    OverrideView,
    UserRuleRoutes,
)
from sandbox_sim.web.control.periods import PeriodRoutes
from sandbox_sim.web.control.records import RecordRoutes, SettleRoutes
from sandbox_sim.web.control.refunds import RefundRoutes
from sandbox_sim.web.control.state import StateRoutes
from sandbox_sim.web.pages.browser_pages import BrowserPages, StaticRoutes
from sandbox_sim.web.pages.card_page import CardPageRoutes
from sandbox_sim.web.pages.certify_report import CertifyReportRoutes
from sandbox_sim.web.pages.dashboard import DashboardRoutes
from sandbox_sim.web.pages.handset import HandsetCodes, HandsetRoutes
from sandbox_sim.web.pages.listing import RecordLists
from sandbox_sim.web.pages.login import Invitations, LoginRoutes
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.pages.timeline import Details
from sandbox_sim.web.routes import RouteGroup

if TYPE_CHECKING:
    from sandbox_sim.bootstrap.parts import Gateway
    from sandbox_sim.callbacks.doctor import ReceiverExamination


def route_groups(parts: "Gateway") -> Sequence[RouteGroup]:
    """The routes, without those of the live feed and of the OpenAPI document."""
    production = parts.production
    live, live_records = (production.actions, production.records) if production else (None, None)
    asking = production.asking if production else None
    pending = OpenTransactions(parts.records, parts.clock, live_records)
    books = production.books if production else None
    ledger = Ledger(parts.store, parts.clock, parts.accounts, live=production is not None)
    rules = parts.user_rules
    snapshots = Snapshots(parts.store, parts.clock, parts.journal, parts.deliveries)
    return [
        *health_groups(production, parts.store, parts.clock, parts.activity, parts.deliveries),
        RecordRoutes(parts.records, parts.record_ids, pending, live_records),
        SettleRoutes(parts.record_ids, parts.manual_actions, parts.clock, live),
        AskRoutes(parts.record_ids, asking, live_records),
        RefundRoutes(parts.record_ids, parts.refunds, parts.clock, parts.public_address),
        CallbackActionRoutes(
            parts.callback_retries,
            parts.manual_actions,
            parts.record_ids,
            partial(_receiver_examination, parts),
        ),
        parts.inbox_routes(),
        ClockRoutes(parts.clock, parts.clock_control),
        ConfigRoutes(parts.behaviour_control, parts.running_settings),
        UserRuleRoutes(rules, UserRuleKind.OVERRIDE, "overrides", OverrideBody, OverrideView),
        UserRuleRoutes(rules, UserRuleKind.FAULT, "faults", FaultBody, FaultView),
        LedgerRoutes(ledger, books),
        BookRoutes(books, parts.record_ids),
        PeriodRoutes(production.periods if production else None),
        StateRoutes(
            parts.manual_actions,
            parts.seeding(),
            snapshots,
            parts.public_address,
            production=production is not None,
            file=parts.store if isinstance(parts.store, FileStore) else None,
        ),
        *parts.pages.groups,
    ]


def _receiver_examination(parts: "Gateway") -> "ReceiverExamination":
    """Examines receivers, by the sender and the settings of callbacks."""
    from sandbox_sim.callbacks import doctor  # noqa: PLC0415 -- serve starts without it

    return doctor.ReceiverExamination(
        parts.store,
        parts.sender,
        parts.clock,
        parts.ids,
        parts.clients.values(),
        parts.behaviour,
        parts.settings.callback_routes(),
    )


class PageParts:
    """The pages of one gateway, made from its other parts."""

    def __init__(self, parts: "Gateway") -> None:
        self._parts = parts
        self.templates = Templates(parts.settings.base_path, parts.settings.allowed_hosts)
        self.files = StaticRoutes(self.templates)
        self.invitations = Invitations()

    @property
    def shared(self) -> bool:
        """Whether other processes can serve the same state."""
        return is_postgres(self._parts.settings.store)

    @property
    def groups(self) -> Sequence[RouteGroup]:
        """The routes of the pages."""
        parts = self._parts
        card_pages = CardPages(parts.store, parts.clock, parts.settlement, parts.behaviour)
        return [
            self._dashboard(),
            CardPageRoutes(card_pages, self.templates, parts.behaviour),
            self._handset(),
            LoginRoutes(
                parts.settings.token,
                self.templates,
                self.invitations,
                secured=parts.settings.is_secured,
            ),
            CertifyReportRoutes(certify_report, self.templates),
            self.files,
        ]

    def _handset(self) -> HandsetRoutes:
        parts, settings = self._parts, self._parts.settings
        return HandsetRoutes(
            Handsets(parts.store, parts.clock, parts.settlement, parts.behaviour),
            parts.feed,
            parts.clock,
            None if self.shared else HandsetCodes(parts.clock, parts.ids),
            self.templates,
            parts.public_address,
            parts.behaviour,
            token=settings.token,
            serves_others=settings.serves_others,
            secured=settings.is_secured,
        )

    def _dashboard(self) -> DashboardRoutes:
        parts, settings = self._parts, self._parts.settings
        production = parts.production
        live = production.records if production else None
        ledger = Ledger(parts.store, parts.clock, parts.accounts, live=production is not None)
        first = settings.credentials[0].client()
        secret = first.secret_key if first == SANDBOX_CLIENT else "SECRET_KEY"
        return DashboardRoutes(
            self.templates,
            RecordLists(parts.records, OpenTransactions(parts.records, parts.clock, live), live),
            Details(parts.records, ledger, live),
            ledger,
            parts.user_rules,
            parts.store,
            parts.clock,
            parts.behaviour,
            parts.running_settings,
            parts.public_address,
            credentials=f"{first.client_key}:{secret}",
            networks=production.overview() if production else None,
            needs_login=settings.token is not None,
        )

    def browser_pages(self, paths: Container[str]) -> BrowserPages:
        """What a browser gets outside the control API. paths: those of the interface."""
        return BrowserPages(self._parts.settings.base_path, paths, self.templates, self.files)
