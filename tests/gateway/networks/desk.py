"""Production mode over a memory store, with networks that give the answers of a test."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.adapters.ids import RandomIds
from sandbox_sim.adapters.stores.memory.memory_store import MemoryStore
from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.clients import Client, ServiceMode
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.double_entry import accounts, invariants, movements
from sandbox_sim.domain.double_entry.entries import Entry, Reason, Transfer
from sandbox_sim.domain.jobs import JobKind
from sandbox_sim.domain.ledger import Account as Wallet
from sandbox_sim.domain.networks.attempts import Attempt, Terms
from sandbox_sim.domain.networks.notifications import NotificationTrust, RawNotification
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.networks.routing import Route
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.domain.response_codes import Reply
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.callbacks.answer_gate import ProcessAnswerGate
from sandbox_sim.gateway.ledger.accounts import Accounts
from sandbox_sim.gateway.networks.live_sms import LiveSms
from sandbox_sim.gateway.networks.notifications import NetworkNotifications
from sandbox_sim.gateway.networks.outcome_recorder import OutcomeRecorder
from sandbox_sim.gateway.networks.processor import NetworkProcessor
from sandbox_sim.gateway.networks.registry import ConfiguredNetwork, Networks
from sandbox_sim.gateway.networks.status_asking import StatusAsking
from sandbox_sim.gateway.payments.settlement import CallbackSettings, Settlement
from sandbox_sim.gateway.payments.submit import Payments
from sandbox_sim.gateway.ports.network import (
    Capabilities,
    Health,
    NetworkEvents,
    Notification,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
    UnreadableNotification,
)
from tests.fakes import FailingStore
from tests.records import SERVICE, every, transaction

CLIENT = Client("live_key", "live_secret", ServiceMode.PRODUCTION)
PENDING = SubmitResult(Outcome.PENDING)
NOT_SENT = SubmitResult(Outcome.NOT_SENT, reason="connection refused", transport_fault=True)
LOST = SubmitResult(Outcome.UNKNOWN, reason="no answer", transport_fault=True)
NOT_FOUND = StatusResult(Outcome.UNKNOWN, found=False)
SUCCEEDED, FAILED = StatusResult(Outcome.SUCCEEDED), StatusResult(Outcome.FAILED, reason="no funds")


TAKES_ALL = Capabilities(
    frozenset(Operation), frozenset({"GHS", "SMS"}), trust=NotificationTrust.SIGNED
)


@dataclass
class ScriptedNetwork:
    """Gives the scripted results in turn, and PENDING after them."""

    capabilities: Capabilities = TAKES_ALL
    submits: list[SubmitRequest] = field(default_factory=list)
    queries: list[StatusQuery] = field(default_factory=list)
    results: deque[SubmitResult] = field(default_factory=deque)
    statuses: deque[StatusResult] = field(default_factory=deque)
    notification: Notification | None = None
    blocked: asyncio.Event | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self, events: NetworkEvents) -> None: ...

    async def close(self) -> None: ...

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        self.submits.append(request)
        self.arrived.set()
        if self.blocked is not None:
            await self.blocked.wait()
        return self.results.popleft() if self.results else PENDING

    async def status(self, query: StatusQuery) -> StatusResult:
        self.queries.append(query)
        return self.statuses.popleft() if self.statuses else StatusResult(Outcome.PENDING)

    def verify(self, raw: RawNotification) -> bool:
        return raw.headers.get("x-signature") == "valid"

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        if self.notification is None:
            raise UnreadableNotification("it is no JSON")
        return [self.notification]

    async def health(self) -> Health:
        return Health(ok=True, detail="it answers")


class Desk:
    """Takes payments of mode P. They go to `first`, or to `second` if nothing reached the first."""

    def __init__(self, terms: Terms | None = None, **capabilities: Any) -> None:
        self.clock, ids = VirtualClock(), RandomIds(seed=1)
        self.store = FailingStore(MemoryStore(self.clock))
        self.first, self.second = ScriptedNetwork(), ScriptedNetwork()
        if capabilities:
            self.first.capabilities = replace(TAKES_ALL, **capabilities)
        known = self.first.capabilities
        terms = terms or Terms(
            has_status=known.has_status,
            repeats_within=known.repeats_within,
            always_sent=known.always_sent,
        )
        configured = [
            ConfiguredNetwork("first", "scripted", self.first, terms),
            ConfiguredNetwork("second", "scripted", self.second, terms),
        ]
        routes = [Route("first"), Route("second", frozenset({Operation.AIRTIME, Operation.SMS}))]
        self.networks = Networks(configured, routes, self.clock)
        settlement = Settlement(ids, Accounts(), {CLIENT.client_key: CLIENT}, CallbackSettings())
        self.recorder = OutcomeRecorder(self.networks, ids, settlement.callback_for)
        parts = self.store, self.clock
        self.processor = NetworkProcessor(*parts, ids, self.networks, self.recorder)
        self.asking = StatusAsking(*parts, self.networks, self.recorder)
        self.notifications = NetworkNotifications(*parts, self.networks, self.recorder)
        self.sms = LiveSms(*parts, ids, self.networks, self.recorder)
        self.gate = ProcessAnswerGate()
        processors = {ServiceMode.PRODUCTION: self.processor}
        self.payments = Payments(self.store, ids, self.gate, processors)

    async def pay(self, **fields: Any) -> Reply:
        payment = transaction(**fields).payment
        address, now = (lambda: "http://gateway.test"), self.clock.now()
        reply = await self.payments.submit(payment, CLIENT, now, address)
        assert reply.awaited_by is not None
        self.gate.release(reply.awaited_by)
        return reply

    async def fund(self, amount: str, wallet: Wallet = Wallet.PAYOUT) -> None:
        """Give the service money to pay out."""
        source = accounts.clearing("first", "GHS")
        target = accounts.available(SERVICE, wallet, "GHS")
        entry = Entry(
            Reason.DEPOSITED, "", self.clock.now(), [Transfer(source, target, Decimal(amount))]
        )
        await self.store.run(lambda unit: unit.enter(entry))

    async def fund_airtime(self, amount: str) -> None:
        """Give the service airtime to send."""
        at = self.clock.now()
        entry = movements.topup(SERVICE, Wallet.AIRTIME, "GHS", Decimal(amount), "", at)
        await self.store.run(lambda unit: unit.enter(entry))

    async def run_due(self) -> list[JobKind]:
        """Run the due jobs of production mode; returns the kinds of all due jobs."""
        now = self.clock.now()
        jobs = await self.store.run(lambda unit: unit.claim_due(now, 100))
        handlers: Mapping[JobKind, Any] = {
            JobKind.ASK_NETWORK: self.asking.background,
            JobKind.READ_NOTIFICATION: self.notifications.background,
            JobKind.SEND_SMS: self.sms.background,
            JobKind.RECHECK_FINAL: self.asking.rechecks,
        }
        for job in jobs:
            if job.kind in handlers:
                handlers[job.kind].start(job)
        await self.asking.background.wait_idle()
        await self.notifications.background.wait_idle()
        await self.sms.background.wait_idle()
        await self.asking.rechecks.wait_idle()
        return [job.kind for job in jobs]

    async def wait(self, **by: float) -> list[JobKind]:
        """Advance the clock, and run the jobs that are due then."""
        self.clock.move_to(self.clock.now() + timedelta(**by))
        return await self.run_due()

    async def attempts(self) -> Sequence[Attempt]:
        found = await self.store.run(lambda unit: unit.list_live_transactions(Listing()))
        (each,) = found
        network_id = each.network_transaction_id
        return await self.store.run(lambda unit: unit.attempts_of(network_id))

    async def transaction(self, transaction_id: str = "T1") -> Transaction | None:
        return await self.store.run(lambda unit: unit.live_transaction(SERVICE, transaction_id))

    async def callbacks(self) -> Sequence[Callback]:
        return await self.store.run(lambda unit: unit.list_callbacks(every(SERVICE)))

    async def balances(self) -> dict[str, Decimal]:
        """The balances that are not zero, by account name. Asserts that the ledger is sound."""
        balances = await self.store.run(lambda unit: unit.book_balances(None))
        holds = await self.store.run(lambda unit: unit.open_holds())
        legs = await self.store.run(lambda unit: unit.book_legs(None))
        assert invariants.violations(balances, holds, legs) == ()
        return {str(account): balance for account, balance in balances.items() if balance}
