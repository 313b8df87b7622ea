"""The only place that wires: settings in, a gateway that runs out."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from sandbox_sim.adapters.callback_sender import HttpCallbackSender
from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.adapters.ids import RandomIds
from sandbox_sim.adapters.people import FakePeople
from sandbox_sim.adapters.stores.memory import MemoryStore
from sandbox_sim.adapters.stores.postgres_url import is_postgres, masked
from sandbox_sim.config import Settings
from sandbox_sim.domain.callbacks import Schedule
from sandbox_sim.domain.jobs import JobKind
from sandbox_sim.domain.msisdn import Allowlist
from sandbox_sim.domain.outcomes import Sandbox
from sandbox_sim.domain.ratelimit import RateLimit
from sandbox_sim.domain.rules import RuleKind
from sandbox_sim.gateway.accounts import Accounts
from sandbox_sim.gateway.checkout import CheckoutPages
from sandbox_sim.gateway.deliveries import AnswerGate, Deliveries
from sandbox_sim.gateway.faults import Faults
from sandbox_sim.gateway.feed import Feed
from sandbox_sim.gateway.held import Held
from sandbox_sim.gateway.interventions import Interventions
from sandbox_sim.gateway.jobs import Jobs
from sandbox_sim.gateway.journal import Journal
from sandbox_sim.gateway.ledger import Ledger
from sandbox_sim.gateway.overrides import Overrides
from sandbox_sim.gateway.payments import Payments
from sandbox_sim.gateway.ports import CallbackSender, Clock, Ids, Relay, Store, StoreError
from sandbox_sim.gateway.queries import Queries
from sandbox_sim.gateway.records import Records
from sandbox_sim.gateway.rules import Rules
from sandbox_sim.gateway.seeding import Seeding
from sandbox_sim.gateway.settlement import Notices, Settlement
from sandbox_sim.gateway.sms import Sms
from sandbox_sim.gateway.snapshots import Snapshots
from sandbox_sim.gateway.telling import TellingStore
from sandbox_sim.gateway.timekeeping import Timekeeping
from sandbox_sim.gateway.watch import Watch
from sandbox_sim.web.address import OurAddress
from sandbox_sim.web.app import make_app
from sandbox_sim.web.checkout import CheckoutFace
from sandbox_sim.web.clock import ClockFace
from sandbox_sim.web.control import Control
from sandbox_sim.web.control_api import Guard, Hosts
from sandbox_sim.web.entrance import Entrance
from sandbox_sim.web.events import EventsFace
from sandbox_sim.web.faults import FaultBody
from sandbox_sim.web.frontdoor import Frontdoor
from sandbox_sim.web.ledger import LedgerFace
from sandbox_sim.web.losses import Losses
from sandbox_sim.web.operations import Operations
from sandbox_sim.web.overrides import OverrideBody
from sandbox_sim.web.records import RecordsFace
from sandbox_sim.web.rules import RulesFace
from sandbox_sim.web.seed import SeedFace
from sandbox_sim.web.snapshots import SnapshotsFace

if TYPE_CHECKING:
    from sandbox_sim.gateway.doctor import Doctor


@dataclass(frozen=True, slots=True)
class Gateway:
    """Everything, wired. `app` starts and stops the background tasks with itself.

    store: what is written to it directly is not told to the live feed.
    """

    app: web.Application
    store: Store
    clock: Clock
    jobs: Jobs
    deliveries: Deliveries
    journal: Journal
    watch: Watch
    interventions: Interventions
    timekeeping: Timekeeping


def build(
    settings: Settings | None = None,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    store: Store | None = None,
    sender: CallbackSender | None = None,
) -> Gateway:
    """Wire a gateway; what is not given is the real thing."""
    settings = settings or Settings()
    clock = clock or SystemClock()
    gate = AnswerGate()
    relay: Relay | None = None
    if store is None:
        store, own_ids, relay = _store(settings, clock, gate)
        ids = ids or own_ids
    ids = ids or RandomIds()
    feed = Feed(clock, ids.token()[:8], relay)
    kept, store = store, TellingStore(store, feed, clock)
    http_sender = HttpCallbackSender(clock, settings.receivers())
    clients = settings.clients()
    accounts = Accounts(
        live=settings.balances == "live", sms_initial_units=settings.sms_initial_units
    )
    sandbox = _sandbox(settings)
    held = Held(store)
    deliveries = Deliveries(
        store, clock, sender or http_sender, _schedule(settings), gate, settings.routes(), held
    )
    notices = Notices(
        settings.callback_profile, settings.callback_profiles, settings.sign_callbacks
    )
    rules = Rules(store, clock, ids)
    settlement = Settlement(ids, accounts, clients, notices)
    watch = Watch(store, clock)
    overrides = Overrides(store, rules, settlement, watch)
    pages = CheckoutPages(store, clock, settlement, sandbox)
    settle_delay = timedelta(milliseconds=settings.settle_delay_ms)
    transition = timedelta(milliseconds=settings.sms_transition_ms)
    payments = Payments(
        store,
        clock,
        ids,
        accounts,
        gate,
        overrides,
        sandbox=sandbox,
        settle_delay=settle_delay,
        auto_complete=timedelta(milliseconds=settings.card_auto_complete_ms),
    )
    sms = Sms(
        store,
        clock,
        ids,
        accounts,
        allowlist=sandbox.allowlist,
        approved_senders=frozenset(settings.approved_senders),
        transition=transition,
    )
    seeding = Seeding(
        store,
        clock,
        FakePeople(sandbox, settings.approved_senders),
        accounts,
        settlement,
        sms,
        clients,
        sandbox=sandbox,
        settle_delay=settle_delay,
        transition=transition,
    )
    jobs = Jobs(
        store,
        clock,
        deliveries,
        {
            JobKind.SETTLE: settlement.on_due,
            JobKind.SETTLE_CARD: pages.on_due,
            JobKind.SETTLE_SMS: sms.on_due,
            JobKind.DELIVER: deliveries.take,
            JobKind.LET_GO: held.on_due,
        },
    )
    limit = None
    if settings.rate_limit_per_minute is not None:
        limit = RateLimit(settings.rate_limit_per_minute, settings.rate_limit_burst)
    operations = Operations(
        payments,
        Queries(store, clock, accounts),
        sms,
        overrides,
        card_entry=settings.sandbox_card_entry,
    )
    journal = Journal(store, clock)
    our_address = OurAddress(settings.public_url, settings.base_path)
    losses = Losses(clock)
    frontdoor = Frontdoor(
        Entrance(clients.values(), clock, limit),
        operations.by_path(),
        gate,
        ids,
        clock,
        journal,
        Faults(store, rules, ids),
        losses,
        our_address=our_address,
        base_path=settings.base_path,
        reject_status=settings.sandbox_reject_status,
    )
    guard = Guard(settings.token, Hosts(settings.host, settings.listed_hosts()))
    interventions = Interventions(store, clock, journal, settlement, deliveries)
    timekeeping = Timekeeping(store, clock, jobs)
    events = EventsFace(feed, clock, guard)
    app = make_app(
        frontdoor,
        [
            Control(store, clock, watch, clients, guard),
            ClockFace(clock, timekeeping, guard),
            LedgerFace(Ledger(store, clock, accounts), guard),
            RecordsFace(Records(store, journal, watch), interventions, guard),
            SnapshotsFace(Snapshots(store, clock, journal), guard),
            SeedFace(seeding, our_address, guard),
            CheckoutFace(pages, guard),
            RulesFace(rules, RuleKind.OVERRIDE, "overrides", OverrideBody, guard),
            RulesFace(rules, RuleKind.FAULT, "faults", FaultBody, guard),
            events,
        ],
        drain=deliveries.close,
        base_path=settings.base_path,
        max_body_bytes=settings.max_body_bytes,
    )
    app.on_shutdown.append(losses.stop)
    app.cleanup_ctx.append(
        partial(_background, store, timekeeping, (rules, held), journal, jobs, http_sender)
    )
    app.on_shutdown.append(events.end)
    return Gateway(app, kept, clock, jobs, deliveries, journal, watch, interventions, timekeeping)


@contextlib.asynccontextmanager
async def open_doctor() -> AsyncIterator["Doctor"]:
    """Who examines receivers, over a session of its own; no gateway has to run for it."""
    from sandbox_sim.gateway.doctor import Doctor  # noqa: PLC0415 -- serve starts without it

    clock = SystemClock()
    async with HttpCallbackSender(clock) as sender:
        yield Doctor(sender, clock, RandomIds())


def _sandbox(settings: Settings) -> Sandbox:
    return Sandbox(
        allowlist=Allowlist(
            prefixes=tuple(settings.allowed_prefixes),
            numbers=frozenset(settings.allowed_numbers),
            accept_international=settings.accept_international,
            match_network=settings.match_network,
        ),
        test_cards=settings.test_cards,
        reject_duplicates=settings.duplicates == "reject",
    )


def _schedule(settings: Settings) -> Schedule:
    return Schedule(
        attempts=settings.callback_attempts,
        interval=timedelta(seconds=settings.callback_retry_interval_s),
        timeout=timedelta(seconds=settings.callback_timeout_s),
    )


def _store(settings: Settings, clock: Clock, gate: AnswerGate) -> tuple[Store, Ids, Relay | None]:
    """The store that the setting names; ids fit for it; and what leads to others that share it.

    What it needs is loaded only now.
    """
    if settings.store.startswith("sqlite:"):
        from sandbox_sim.adapters.stores.sqlite import SqliteStore  # noqa: PLC0415

        return SqliteStore(settings.sqlite_path, clock, settings.durability), RandomIds(), None
    if is_postgres(settings.store):
        try:
            from sandbox_sim.adapters.stores.postgres import PostgresStore  # noqa: PLC0415
        except ModuleNotFoundError as error:
            needed = f'{error.name} is needed: pip install "sandbox-sim[postgres]"'
            raise StoreError(f"{masked(settings.store)}: {needed}") from None
        store = PostgresStore(settings.store, clock, gate)
        return store, RandomIds(network_numbers=store.network_numbers), store.relay
    return MemoryStore(clock), RandomIds(), None


async def _background(
    store: Store,
    timekeeping: Timekeeping,
    at_hand: Sequence[Rules | Held],
    journal: Journal,
    jobs: Jobs,
    sender: HttpCallbackSender,
    _app: web.Application,
) -> AsyncIterator[None]:
    """The store and what of it is at hand, the callback session and the loops, while we run."""
    await store.open()
    try:
        await timekeeping.start()
        for each in at_hand:
            await each.load()
        async with sender:
            tasks = [asyncio.create_task(each.run_forever()) for each in (jobs, journal)]
            yield
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await journal.save()
    finally:
        await store.close()
