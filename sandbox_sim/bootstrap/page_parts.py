"""The parts that only the pages for people need."""

from collections.abc import Container, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from sandbox_sim.adapters.stores.postgres.postgres_url import is_postgres
from sandbox_sim.domain.clients import SANDBOX_CLIENT
from sandbox_sim.gateway.ledger.ledger_control import Ledger
from sandbox_sim.gateway.networks.network_overview import NetworkOverview
from sandbox_sim.gateway.payments.card_page import CardPages
from sandbox_sim.gateway.payments.handset import Handsets
from sandbox_sim.web.control.handlers import RouteGroup
from sandbox_sim.web.pages.browser_pages import BrowserPages
from sandbox_sim.web.pages.card_page import CardPageRoutes
from sandbox_sim.web.pages.changes import ChangeRoutes
from sandbox_sim.web.pages.dashboard import DashboardRoutes
from sandbox_sim.web.pages.handset import HandsetRoutes
from sandbox_sim.web.pages.handset_codes import HandsetCodes
from sandbox_sim.web.pages.inbox_page import InboxPage
from sandbox_sim.web.pages.login import LoginRoutes
from sandbox_sim.web.pages.rules_page import RulesRoutes
from sandbox_sim.web.pages.static_files import StaticRoutes
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.pages.texts import Texts
from sandbox_sim.web.pages.timeline import Settings

if TYPE_CHECKING:
    from sandbox_sim.bootstrap.parts import Parts


class PageParts:
    """The pages of one gateway, made from its other parts."""

    def __init__(self, parts: "Parts") -> None:
        self._parts = parts
        text = Texts()
        self.templates = Templates(parts.settings.base_path, parts.settings.allowed_hosts, text)
        self.files = StaticRoutes(text)

    @property
    def _shared(self) -> bool:
        """Whether other processes can serve the same state."""
        return is_postgres(self._parts.settings.store)

    @property
    def groups(self) -> Sequence[RouteGroup]:
        """The routes of the pages."""
        parts = self._parts
        card_pages = CardPages(parts.store, parts.clock, parts.settlement, parts.sandbox)
        return [
            self._dashboard(),
            CardPageRoutes(
                card_pages,
                self.templates,
                parts.settings.test_cards,
                parts.settings.card_auto_complete_ms,
            ),
            self._handset(),
            RulesRoutes(self.templates),
            ChangeRoutes(parts.store, parts.feed, parts.clock, shared=self._shared),
            LoginRoutes(parts.settings.token, self.templates),
            self.files,
        ]

    def _handset(self) -> HandsetRoutes:
        parts, settings = self._parts, self._parts.settings
        return HandsetRoutes(
            Handsets(parts.store, parts.clock, parts.settlement, parts.sandbox.allowlist),
            parts.feed,
            parts.clock,
            None if self._shared else HandsetCodes(parts.clock, parts.ids),
            self.templates,
            parts.public_address,
            token=settings.token,
            asks=settings.approval == "handset",
            serves_others=not settings.loopback,
        )

    def _dashboard(self) -> DashboardRoutes:
        parts, settings = self._parts, self._parts.settings
        production = parts.production
        first = settings.credentials[0].client()
        secret = first.secret_key if first == SANDBOX_CLIENT else "SECRET_KEY"
        facts = Settings(
            settings.settle_delay_ms,
            settings.card_auto_complete_ms,
            settings.sms_transition_ms,
            settings.callback_attempts,
            settings.callback_retry_interval_s,
            f"{first.client_key}:{secret}",
            self.templates.text,
            number=next(iter(settings.allowed_numbers), f"{settings.allowed_prefixes[0]}000001"),
        )
        return DashboardRoutes(
            self.templates,
            parts.records,
            Ledger(parts.store, parts.clock, parts.accounts),
            parts.user_rules,
            parts.store,
            parts.clock,
            facts,
            parts.public_address,
            live=production.records if production else None,
            networks=NetworkOverview(parts.store, production.networks) if production else None,
            needs_login=settings.token is not None,
        )

    @cached_property
    def inbox(self) -> InboxPage:
        """Shows an inbox to a browser."""
        return InboxPage(self._parts.records, self.templates)

    def browser_pages(self, paths: Container[str]) -> BrowserPages:
        """What a browser gets outside the control API. paths: those of the interface."""
        return BrowserPages(self._parts.settings.base_path, paths, self.templates, self.files)
