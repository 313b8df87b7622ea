"""The dashboard at `/_sandbox/`: lists on the left, the timeline of one record on the right.

The server renders every view, and its address names all of it: `view`, the search `q`, the chosen
record `open` and the page `after`. With `only=timeline` it is the newest record alone.
static/dashboard.js asks for the same address again when something happens, and shows what changed.
"""

from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aiohttp import web

from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.control.faults import FAULT_STATUSES
from sandbox_sim.domain.control.listing import Listing as PageOf
from sandbox_sim.domain.control.user_rules import UserRuleKind, shown as rule_shown
from sandbox_sim.domain.double_entry.accounts import Account
from sandbox_sim.domain.json_text import plain_decimal
from sandbox_sim.domain.ledger import LedgerQuery, shown as posting_shown
from sandbox_sim.gateway.control.clock_view import shown as clock_shown
from sandbox_sim.gateway.control.record_search import Records
from sandbox_sim.gateway.control.user_rules import UserRules
from sandbox_sim.gateway.ledger.ledger_control import Ledger
from sandbox_sim.gateway.networks.network_overview import NetworkOverview
from sandbox_sim.gateway.ports import Clock, Store
from sandbox_sim.web.control.input_models import LARGEST_INTEGER
from sandbox_sim.web.networks.overview import network_view
from sandbox_sim.web.pages.clock_jobs import due_jobs
from sandbox_sim.web.pages.details import Details
from sandbox_sim.web.pages.listing import Listing
from sandbox_sim.web.pages.samples import samples_json
from sandbox_sim.web.pages.search import Search, parse_search
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.pages.timeline import Settings
from sandbox_sim.web.pages.troubles import troubles_of
from sandbox_sim.web.public_address import PublicAddress
from sandbox_sim.web.routes import CONTROL_PREFIX, HTML, Access, Answer, Route

if TYPE_CHECKING:
    from sandbox_sim.gateway.networks.live_records import LiveRecords

VIEWS: Final = ("payments", "callbacks", "sms", "requests", "ledger", "overrides", "faults")
# The view that production adds.
_NETWORKS: Final = "networks"
_WITH_DETAIL: Final = ("payments", "callbacks", "sms", "requests")
_RULES: Final = {"overrides": UserRuleKind.OVERRIDE, "faults": UserRuleKind.FAULT}
_LEDGER_PAGE: Final = 100
_RULES_PAGE: Final = 200


class Asked(NamedTuple):
    """What the address asks for."""

    view: str
    search: Search
    open: str
    after: str
    only_timeline: bool

    @classmethod
    def of(cls, query: Mapping[str, str], views: Container[str] = VIEWS) -> "Asked":
        """Read a query. What it does not understand is as if it were not there."""
        view = query.get("view", "")
        view = view if view in views else "payments"
        opened, after = (
            query.get(name, "")[:400].replace("\x00", "") for name in ("open", "after")
        )
        search = parse_search(query.get("q", "").replace("\x00", ""))
        return cls(view, search, opened, after, query.get("only") == "timeline")


class DashboardRoutes:
    """The views of the dashboard.

    live and networks: what production adds; None where it is off.
    needs_login: whether there is something to log out from.
    """

    def __init__(
        self,
        templates: Templates,
        records: Records,
        ledger: Ledger,
        rules: UserRules,
        store: Store,
        clock: Clock,
        settings: Settings,
        public_address: PublicAddress,
        *,
        live: "LiveRecords | None",
        networks: NetworkOverview | None,
        needs_login: bool,
    ) -> None:
        self._templates = templates
        self._text = templates.text
        self._listing = Listing(records, self._text, live)
        self._details = Details(records, ledger, live)
        self._ledger = ledger
        self._rules = rules
        self._store = store
        self._clock = clock
        self._settings = settings
        self._public_address = public_address
        self._networks = networks
        self._views = VIEWS if networks is None else (*VIEWS, _NETWORKS)
        self._needs_login = needs_login

    def routes(self) -> Sequence[Route]:
        """The routes of the dashboard."""
        route = partial(
            Route, path=f"{CONTROL_PREFIX}/", group="Pages", access=Access.PAGE,
            answers=(
                Answer(None, media_type=HTML, when="the page"),
                Answer(None, 303, None, "the browser has to log in"),
            ),
        )  # fmt: skip
        return [
            route("GET", handler=self.view, summary="show the dashboard"),
            route("HEAD", handler=self.view, summary="look whether there is a dashboard"),
        ]

    async def view(self, request: web.Request) -> web.Response:
        """Show one view."""
        asked = Asked.of(request.query, self._views)
        settings = self._settings._replace(url=self._public_address(request))
        callbacks = await self._listing.callbacks_of(asked.search)
        context = {
            "views": self._views,
            "view": asked.view,
            "search": asked.search,
            "only_timeline": asked.only_timeline and asked.view in _WITH_DETAIL,
            "clock": await self._clock_context(),
            "troubles": troubles_of(callbacks, self._text),
            "production": self._networks is not None,
            "needs_login": self._needs_login,
            "url": settings.url,
            "number": asked.search.number or settings.number,
            **await self._content(asked, settings),
        }
        return await self._templates.page(request, "dashboard.html", context)

    async def _content(self, asked: Asked, settings: Settings) -> Mapping[str, Any]:
        """What the view itself shows."""
        content: dict[str, Any] = {
            "rows": (), "next": None, "open": "", "chosen": bool(asked.open), "timeline": None,
            "postings": (), "audits": (), "rules": (), "profiles": [*Profile],
            "fault_statuses": FAULT_STATUSES,
            "samples": samples_json(settings.url, self._text),
        }  # fmt: skip
        if asked.view in _WITH_DETAIL:
            page = await self._listing.page(asked.view, asked.search, asked.after or None)
            opened = asked.open or (page.rows[0].key if page.rows else "")
            timeline = await self._details.timeline(opened, settings) if opened else None
            content |= {
                "rows": page.rows, "next": page.next, "open": opened, "timeline": timeline,
            }  # fmt: skip
        elif asked.view == "ledger":
            content |= await self._ledger_context(asked)
        elif asked.view == _NETWORKS and self._networks is not None:
            content["networks"] = [network_view(each) for each in await self._networks.states()]
        else:
            listing = PageOf(asked.search.service_id, None, _RULES_PAGE)
            found = await self._rules.listed(_RULES[asked.view], listing)
            content["rules"] = [rule_shown(rule) for rule in found]
        return content

    async def _ledger_context(self, asked: Asked) -> Mapping[str, Any]:
        after = int(asked.after[:18]) if asked.after.isascii() and asked.after.isdigit() else None
        subject = asked.search.words[0] if asked.search.words else None
        query = LedgerQuery(
            service_id=asked.search.service_id,
            subject=subject,
            after=min(after or LARGEST_INTEGER, LARGEST_INTEGER) if after is not None else None,
            limit=_LEDGER_PAGE,
        )
        page = await self._ledger.page(query)
        return {
            "postings": [posting_shown(line.posting) for line in page.lines],
            "audits": page.audits or (),
            "live_balances": await self._live_balances(asked),
            "next": page.next,
        }

    async def _live_balances(self, asked: Asked) -> Mapping[Account, str]:
        """The balances of mode P on the first page. The check of its books is not made here."""
        if self._networks is None or asked.after:
            return {}
        of_service = asked.search.service_id
        balances = await self._store.run(lambda unit: unit.book_balances(of_service))
        return {account: plain_decimal(balance) for account, balance in balances.items()}

    async def _clock_context(self) -> Mapping[str, Any]:
        return {**clock_shown(self._clock), "jobs": await due_jobs(self._store, self._text)}
