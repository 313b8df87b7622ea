"""The dashboard at `/_sandbox/`: lists on the left, the timeline of one record on the right.

The server renders every view. The address has its whole state: `view`, the search `q`, the chosen
record `open` and the page `after`. With `only=timeline` it shows only the newest record.
static/dashboard.js loads the same address again when something happens, and shows what changed.
"""

import json
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, NamedTuple

from aiohttp import web

from sandbox_sim.callbacks.receiver_checks import remedy_of_status
from sandbox_sim.ledger.books import Books, SuspenseItem
from sandbox_sim.ledger.ledger_control import Ledger
from sandbox_sim.operations import ACTIONS, Operation
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.overrides.faults import FAULT_STATUSES
from sandbox_sim.overrides.overrides import UserRules
from sandbox_sim.payments.approval import prompt_of
from sandbox_sim.ports import Clock, Store, Unit, clock as clock_view
from sandbox_sim.production.network_overview import NetworkOverview
from sandbox_sim.records import overrides
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.records.jobs import DELIVERY_KINDS, Job, JobKind
from sandbox_sim.records.ledger import LedgerQuery, shown_line
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.overrides import UserRuleKind
from sandbox_sim.values.json_text import plain_decimal
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.values.timestamps import iso
from sandbox_sim.web.control.config import ChangeableSettings
from sandbox_sim.web.control.input import LARGEST_INTEGER
from sandbox_sim.web.control.ledger import ADJUSTABLE, suspense_view
from sandbox_sim.web.control.networks import network_view
from sandbox_sim.web.pages.details import Details
from sandbox_sim.web.pages.listing import RecordLists
from sandbox_sim.web.pages.search import UNACKNOWLEDGED, SearchQuery, parse_search
from sandbox_sim.web.pages.steps import TimelineSettings
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import CONTROL_PREFIX, PAGE, Access, Answer, RouteGroup, route
from sandbox_sim.web.transport.requests import PublicAddress

_MAX_DUE_JOBS: Final = 8

# Some jobs have nothing left to do: a payment that was settled by hand keeps its job.
_MAX_JOBS_READ: Final = 40

_JOB_WORDS: Final = {
    JobKind.SETTLE_SMS: ("SMS", "sends or refunds SMS {job}"),
    JobKind.ASK_NETWORK: ("question", "asks a network about attempt {job}"),
    JobKind.RECHECK_FINAL: (
        "question",
        "asks a network again about attempt {job}, which is final",
    ),
    JobKind.SEND_SMS: ("SMS", "sends an SMS to a network in attempt {job}"),
    JobKind.READ_NOTIFICATION: ("notification", "reads notification {job}"),
}


class DueJob(NamedTuple):
    """A job: its due time, one word for it, and a description."""

    at: str
    short: str
    words: str


async def due_jobs(unit: Unit) -> Sequence[DueJob]:
    """The next jobs that will do something, at most eight."""
    found: list[DueJob] = []
    for job in await unit.next_jobs(_MAX_JOBS_READ):
        due = await _due_job(unit, job)
        found += [due] if due is not None else []
        if len(found) == _MAX_DUE_JOBS:
            break
    return found


async def _due_job(unit: Unit, job: Job) -> DueJob | None:
    """The job in words; None if it will do nothing."""
    at, service = iso(job.due_at), job.service_id
    if job.kind is JobKind.SETTLE:
        transaction = await unit.transaction_by_network_id(job.service_id, job.subject)
        if transaction is None or not transaction.settles_by_itself:
            return None
        short = "settlement" if prompt_of(transaction) is None else "prompt times out"
        name = redact_text(transaction.transaction_id)
        words = f"{name} of service {service} becomes {transaction.final_status}"
        return DueJob(at, short, words)
    if job.kind in (*DELIVERY_KINDS, JobKind.RELEASE):
        callback = await unit.callback(job.service_id, job.subject)
        if callback is None or not callback.state.is_waiting:
            return None
        short = "retry" if callback.attempts else "callback"
        number = len(callback.attempts) + 1
        name = redact_text(callback.transaction_id)
        words = f"attempt {number} at the callback of {name} of service {service}"
        return DueJob(at, short, words)
    short, long = _JOB_WORDS[job.kind]
    return DueJob(at, short, long.format(job=f"{job.subject} of service {service}"))


# The words for a value, and the fields that it changes.
Magic = tuple[str, Mapping[str, object]]


# Fields that change the outcome of a payment to a phone number, with the outcome.
_MAGIC: Final[tuple[Magic, ...]] = (
    ("202, then 000", {"customer_number": "0244000001"}),
    ("015 declined", {"customer_number": "0244000009"}),
    ("019 not allowlisted", {"customer_number": "0540000000"}),
    ("016 above the cap", {"amount": 10001}),
    ("400 bad request", {"amount": "10"}),
)

_MAGIC_SMS: Final[tuple[Magic, ...]] = (
    ("sent", {"customer_number": "0244000001"}),
    ("refunded", {"customer_number": "0244000009"}),
    ("S002 not allowlisted", {"customer_number": "0540000000"}),
    ("237 no units", {"service_id": 59}),
)


def samples_json(url: str) -> str:
    """The samples for static/send.js, as JSON. url: the address of the gateway.

    The script fills in the empty fields: a new `transaction_id`, and `request_time`.
    """
    samples, inbox = [], f"{url}/_sandbox/inbox"
    for operation in (*ACTIONS, *(each for each in Operation if each not in ACTIONS)):
        row = operation.row
        body = operation.sample(
            55, inbox, transaction_id="", callback_url=f"{inbox}/dashboard", request_time=""
        )
        magic: Iterable[Magic] = ()
        if "customer_number" in row.valid and operation is not Operation.CARD:
            magic = _MAGIC_SMS if row.payment is None else _MAGIC
        elif row.failing:
            magic = (
                ("succeeds", {name: body[name] for name in row.failing}),
                ("fails", row.failing),
            )
        samples.append(
            {
                "operation": operation.value,
                "name": row.title,
                "path": row.path,
                "body": body,
                "magic": [*magic],
            }
        )
    return json.dumps(samples)


_MAX_TROUBLES: Final = 3


class Trouble(NamedTuple):
    """Callbacks that one receiver did not acknowledge, for one reason.

    advice: what to do; empty if the receiver did not answer, because the reason then says it.
    newest_id: of the newest callback. next_at: the time of the next attempt, or None.
    ids: of those that are still retried. failed_ids: of those that can only be sent again.
    """

    callbacks: int
    url: str
    reason: str
    advice: str
    newest_id: str
    next_at: str | None
    ids: tuple[str, ...]
    failed_ids: tuple[str, ...]


def troubles_of(callbacks: Iterable[Any]) -> list[Trouble]:
    """The most frequent troubles among callbacks, at most three."""
    groups: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for callback in callbacks:
        if callback["state"] in UNACKNOWLEDGED and callback["attempts"]:
            groups[callback["url"], _reason(callback["attempts"][-1])].append(callback)
    found = [_trouble(url, reason, group) for (url, reason), group in groups.items()]
    return sorted(found, key=lambda trouble: -trouble.callbacks)[:_MAX_TROUBLES]


def _trouble(url: str, reason: str, group: list[Any]) -> Trouble:
    waiting = [each for each in group if each["state"] == "retrying"]
    due_times = [each["attempts"][-1]["next_attempt_at"] for each in waiting]
    failed_ids = tuple(each["id"] for each in group if each["state"] == "failed")
    ids = tuple(each["id"] for each in waiting)
    next_at = min(filter(None, due_times), default=None)
    status = group[0]["attempts"][-1]["status_code"]
    advice = "" if status is None else remedy_of_status(status)
    return Trouble(len(group), url, reason, advice, group[0]["id"], next_at, ids, failed_ids)


def _reason(attempt: Any) -> str:
    if attempt["status_code"] is not None:
        return f"got HTTP {attempt['status_code']}"
    verdict, _, problem = attempt["verdict"].partition(": ")
    return f"was not sent: {problem}" if verdict == "not sent" else f"got no answer: {problem}"


# The views by their names in addresses.
VIEWS: Final[Mapping[str, str]] = {
    "payments": "Payments",
    "callbacks": "Callbacks",
    "sms": "SMS",
    "requests": "Requests",
    "ledger": "Ledger",
    "overrides": "Overrides",
    "faults": "Faults",
    "settings": "Settings",
}

_NETWORKS_VIEW: Final = "networks"


def views_of(*, production: bool) -> Mapping[str, str]:
    """The views; in production there are networks instead of settings."""
    if not production:
        return VIEWS
    views = {name: title for name, title in VIEWS.items() if name != "settings"}
    return {**views, _NETWORKS_VIEW: "Networks"}


_WITH_TIMELINE: Final = ("payments", "callbacks", "sms", "requests")

_RULE_KINDS: Final = {"overrides": UserRuleKind.OVERRIDE, "faults": UserRuleKind.FAULT}

# The lists of the control API with the full texts that a view cuts, if they have other names: a
# payment is shown with its request and callbacks.
_FULL_TEXT_LISTS: Final = {"payments": "transactions, requests or callbacks"}

_LEDGER_PAGE: Final = 100

_RULES_PAGE: Final = 200
_ANSWERS: Final = (PAGE, Answer(None, 303, None, "the browser must log in first"))


class DashboardState(NamedTuple):
    """The state of the dashboard in its address."""

    view: str
    search: SearchQuery
    open: str
    after: str
    only_timeline: bool

    @classmethod
    def parse(cls, query: Mapping[str, str], views: Container[str] = VIEWS) -> "DashboardState":
        """Parse a query; ignore unknown values."""
        view = query.get("view", "")
        view = view if view in views else "payments"
        key, after = (query.get(name, "")[:400].replace("\x00", "") for name in ("open", "after"))
        search = parse_search(query.get("q", "").replace("\x00", ""))
        return cls(view, search, key, after, query.get("only") == "timeline")


@dataclass(frozen=True, eq=False)
class DashboardRoutes(RouteGroup):
    """The views of the dashboard.

    credentials: for commands to copy.
    networks, books: of production; None if it is off.
    needs_login: whether the dashboard has a login, and so a button to log out.
    """

    templates: Templates
    listing: RecordLists
    details: Details
    ledger: Ledger
    rules: UserRules
    store: Store
    clock: Clock
    behaviour: BehaviourHolder
    settings: ChangeableSettings
    public_address: PublicAddress
    _: KW_ONLY
    credentials: str
    networks: NetworkOverview | None
    books: Books | None
    needs_login: bool

    group = "Pages"
    access = Access.PAGE

    @route(f"GET {CONTROL_PREFIX}/", "show the dashboard", answers=_ANSWERS)
    @route(f"HEAD {CONTROL_PREFIX}/", "check that the dashboard exists", answers=_ANSWERS)
    async def view(self, request: web.Request) -> web.Response:
        """Show one view."""
        views = views_of(production=self.networks is not None)
        state = DashboardState.parse(request.query, views)
        behaviour, url = self.behaviour.present, self.public_address(request)
        shown_settings = self.settings.shown(behaviour)
        settings = TimelineSettings(behaviour, self.credentials, url)
        callbacks = await self.listing.callbacks_of(state.search)
        context = {
            "view": state.view,
            "full_text_path": f"{CONTROL_PREFIX}/{_FULL_TEXT_LISTS.get(state.view, state.view)}",
            "search": state.search,
            "only_timeline": state.only_timeline and state.view in _WITH_TIMELINE,
            "clock": {**clock_view.shown(self.clock), "jobs": await self.store.run(due_jobs)},
            "troubles": troubles_of(callbacks),
            "changed_settings": sum(each["changed"] for each in shown_settings.values()),
            "settings": shown_settings,
            "stuck": await self.listing.stuck(),
            "production": self.networks is not None,
            "needs_login": self.needs_login,
            "url": settings.url,
            "number": state.search.number or behaviour.sample_number,
            **await self._content(state, settings),
        }
        return await self.templates.page(request, "dashboard.html", context)

    async def _content(
        self, state: DashboardState, settings: TimelineSettings
    ) -> Mapping[str, Any]:
        """The content of the view."""
        content: dict[str, Any] = {
            "rows": (), "after": state.after, "next": None,
            "open": "", "chosen": bool(state.open), "timeline": None,
            "postings": (), "rules": (), "profiles": [*Profile],
            "fault_statuses": FAULT_STATUSES,
            "samples": samples_json(settings.url),
        }  # fmt: skip
        if state.view in _WITH_TIMELINE:
            page = await self.listing.page(state.view, state.search, state.after or None)
            key = state.open or (page.rows[0].key if page.rows else "")
            timeline = await self.details.timeline(key, settings) if key else None
            content |= {
                "rows": page.rows, "next": page.next, "open": key, "timeline": timeline,
            }  # fmt: skip
        elif state.view == "ledger":
            content |= await self._ledger_context(state)
        elif state.view == _NETWORKS_VIEW and self.networks is not None:
            content["networks"] = [network_view(each) for each in await self.networks.states()]
        elif state.view in _RULE_KINDS:
            listing = Listing(state.search.service_id, None, _RULES_PAGE)
            found = await self.rules.listed(_RULE_KINDS[state.view], listing)
            content["rules"] = [overrides.shown(rule) for rule in found]
        return content

    async def _ledger_context(self, state: DashboardState) -> Mapping[str, Any]:
        after = int(state.after[:18]) if state.after.isascii() and state.after.isdigit() else None
        subject = state.search.words[0] if state.search.words else None
        query = LedgerQuery(
            service_id=state.search.service_id,
            subject=subject,
            after=min(after or LARGEST_INTEGER, LARGEST_INTEGER) if after is not None else None,
            limit=_LEDGER_PAGE,
        )
        page = await self.ledger.page(query)
        return {
            **await self._books_context(),
            "postings": [shown_line(line) for line in page.lines],
            "balances": None if query.after is not None else await self._balances(state),
            "next": page.next,
        }

    async def _books_context(self) -> Mapping[str, Any]:
        """The choices in the forms of manual entries, in production."""
        if self.books is None or self.networks is None:
            return {}
        names = [each.name for each in await self.networks.states()]
        suspense = [
            {**suspense_view(each), "words": _suspense_words(each)}
            for each in await self.books.suspense()
        ]
        return {"suspense": suspense, "network_names": names, "ends": ADJUSTABLE}

    async def _balances(self, state: DashboardState) -> Mapping[str, Any]:
        """The balances of the first page. They are not compared with the transfers here."""
        found = await self.ledger.balances(None, state.search.service_id)
        wallets = [
            (account, *map(plain_decimal, (each.amount, each.pending, each.available)))
            for account, each in found.wallets.items()
        ]
        ours = [(account, plain_decimal(amount)) for account, amount in found.ours.items()]
        return {"wallets": wallets, "ours": ours}


def _suspense_words(item: SuspenseItem) -> str:
    direction = "came in" if item.amount > 0 else "went out"
    return f"{plain_decimal(abs(item.amount))} {item.asset} {direction} by {item.network}"
