"""Production mode over a memory store, with networks that give the answers of a test."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.callbacks.delivery_queue import ProcessAnswerGate
from sandbox_sim.ledger import movements
from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.ledger.books import Books
from sandbox_sim.ledger.ledger_control import Ledger
from sandbox_sim.operations import Operation
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.payments.refunds import CollectionKey, Refunded, RefundOrder, Refunds
from sandbox_sim.payments.settlement import Settlement
from sandbox_sim.payments.submit import Payments
from sandbox_sim.ports import JobLost, Store
from sandbox_sim.ports.network import (
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
from sandbox_sim.production.attempt_views import LiveRecordReader
from sandbox_sim.production.live_sms import LiveSms
from sandbox_sim.production.manual_actions import ManualSettlements
from sandbox_sim.production.notifications import NetworkNotifications
from sandbox_sim.production.outcome_recorder import OutcomeRecorder
from sandbox_sim.production.processor import NetworkProcessor
from sandbox_sim.production.registry import ConfiguredNetwork, Networks
from sandbox_sim.production.routing import NetworkRoute
from sandbox_sim.production.status_asking import StatusAsking
from sandbox_sim.records.attempts import Attempt, AttemptQuery, Terms
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import CallbackRecord
from sandbox_sim.records.exchanges import (
    NotificationTrust,
    RawNotification,
    Scrubber,
    StoredNotification,
)
from sandbox_sim.records.jobs import JobKind
from sandbox_sim.records.ledger import ManualEntry, Reason, make_transfer, wallet_of
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status, TransactionRecord
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.values.clients import Client, ServiceMode
from sandbox_sim.values.response_codes import Reply
from sandbox_sim.values.vocabulary import Wallet
from tests.fakes import FailingStore
from tests.live_records import raw_notification
from tests.sample_records import SERVICE, every, transaction, violations
from tests.turns import idle
from tests.units import unit_of

LIVE = ServiceMode.PRODUCTION
VALID = {"x-signature": "valid"}
PAYOUT: dict[str, Any] = {"operation": Operation.PAYOUT}
AVAILABLE, HELD = "service/55/payout/GHS available", "service/55/payout/GHS pending"
COLLECTED, CLEARING = "service/55/collection/GHS available", "network/first/clearing/GHS"
CLIENT = Client("live_key", "live_secret", LIVE)
PENDING = SubmitResult(Outcome.PENDING)
NOT_SENT = SubmitResult(Outcome.NOT_SENT, reason="connection refused", network_fault=True)
LOST = SubmitResult(Outcome.UNKNOWN, reason="no answer", network_fault=True)
PAID = SubmitResult(Outcome.SUCCEEDED)
REFUSED = SubmitResult(Outcome.REFUSED, code="019", reason="no such number")
SIGNED = ManualEntry("ama", "by letter", "letter 12")
NOT_FOUND = StatusResult(Outcome.UNKNOWN, found=False)
SUCCEEDED, FAILED = StatusResult(Outcome.SUCCEEDED), StatusResult(Outcome.FAILED, reason="no funds")

TAKES_ALL = Capabilities(
    frozenset(Operation), frozenset({"GHS", "SMS"}), trust=NotificationTrust.SIGNED
)


def raising(error: Exception) -> Callable[..., Any]:
    """A function that always raises this."""

    def fail(*_args: object) -> None:
        raise error

    return fail


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
    scrubber: Scrubber = field(default_factory=Scrubber)
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
        return raw.headers.get("x-signature") == VALID["x-signature"]

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        if self.notification is None:
            raise UnreadableNotification("it is not valid JSON")
        return [self.notification]

    async def health(self) -> Health:
        return Health(ok=True, detail="it answers")


class Desk:
    """Takes payments of mode P. They go to `first`, or to `second` if nothing reached the first."""

    def __init__(
        self,
        terms: Terms | None = None,
        first: ScriptedNetwork | None = None,
        second: ScriptedNetwork | None = None,
        *,
        clock: VirtualClock | None = None,
        store: Store | None = None,
        seed: int = 1,
        **capabilities: Any,
    ) -> None:
        self.clock, ids = clock or VirtualClock(), RandomIds(seed=seed)
        self.store = FailingStore(store or MemoryStore(self.clock))
        self.first, self.second = first or ScriptedNetwork(), second or ScriptedNetwork()
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
        routes = [
            NetworkRoute("first"),
            NetworkRoute("second", frozenset({Operation.AIRTIME, Operation.SMS})),
        ]
        self.networks = Networks(configured, routes, self.clock)
        settlement = Settlement(
            ids, Accounts(), {CLIENT.client_key: CLIENT}, BehaviourHolder(Behaviour())
        )
        self.recorder = OutcomeRecorder(self.networks, ids, settlement.callback_for)
        parts = self.store, self.clock
        self.processor = NetworkProcessor(*parts, ids, self.networks, self.recorder)
        self.asking = StatusAsking(*parts, self.networks, self.recorder)
        self.notifications = NetworkNotifications(*parts, self.networks, self.recorder)
        self.sms = LiveSms(*parts, ids, self.networks, self.recorder)
        self.ledger = Ledger(self.store, self.clock, Accounts(), live=True)
        self.books = Books(self.store, self.clock, ["first", "second"])
        self.actions = ManualSettlements(*parts, self.networks, self.asking, self.recorder)
        self.gate = ProcessAnswerGate()
        processors = {LIVE: self.processor}
        self.payments = Payments(self.store, ids, self.gate, processors)
        self.refunds = Refunds(self.store, self.clock, ids, processors)

    @property
    def records(self) -> LiveRecordReader:
        return LiveRecordReader(self.store, self.clock, self.networks)

    async def pay(self, *results: SubmitResult, **fields: Any) -> Reply:
        """Pay; the first network gives these results of a submit in turn."""
        self.first.results.extend(results)
        payment = transaction(**fields).payment
        address, now = (lambda: "http://gateway.test"), self.clock.now()
        reply = await self.payments.submit(payment, CLIENT, now, address)
        assert reply.awaited_by is not None
        self.gate.release(reply.awaited_by)
        return reply

    async def refund(self, of: str = "T1", amount: str | None = None, **fields: Any) -> Refunded:
        """Refund the collection with this `transaction_id`."""
        collection = await self.transaction(of)
        key = CollectionKey(SERVICE, collection.network_transaction_id, LIVE)
        exact = None if amount is None else Decimal(amount)
        order = RefundOrder("ama", "sold out", exact)._replace(**fields)
        return await self.refunds.refund(key, order, lambda: "http://gateway.test")

    async def fund(self, amount: str, wallet: Wallet = Wallet.PAYOUT) -> None:
        """Give the service money to pay out."""
        account, now = wallet_of(ServiceMode.PRODUCTION, SERVICE, wallet), self.clock.now()
        made = make_transfer(Reason.DEPOSITED, account, Decimal(amount), "", now, network="first")
        await unit_of(self.store).add_transfer(made)

    async def fund_airtime(self, amount: str) -> None:
        """Give the service airtime to send."""
        at = self.clock.now()
        made = movements.topup(SERVICE, Wallet.AIRTIME, int(amount), at)
        await unit_of(self.store).add_transfer(made)

    async def run_due(self) -> list[JobKind]:
        """Run the due jobs of production mode; returns the kinds of all due jobs."""
        now = self.clock.now()
        jobs = await unit_of(self.store).claim_due(now, 100)
        handlers: Mapping[JobKind, Any] = {
            JobKind.ASK_NETWORK: self.asking.background,
            JobKind.READ_NOTIFICATION: self.notifications.background,
            JobKind.SEND_SMS: self.sms.background,
            JobKind.RECHECK_FINAL: self.asking.rechecks,
        }
        for job in jobs:
            if job.kind in handlers:
                handlers[job.kind].start(job)
        await idle(self.asking.background)
        await idle(self.notifications.background)
        await idle(self.sms.background)
        await idle(self.asking.rechecks)
        for job in jobs:
            if job.kind in handlers:
                with pytest.raises(JobLost):  # it is done, or was put off
                    await unit_of(self.store).finish(job)
        return [job.kind for job in jobs]

    async def wait(self, **by: float) -> list[JobKind]:
        """Advance the clock, and run the jobs that are due then."""
        self.clock.move_to(self.clock.now() + timedelta(**by))
        return await self.run_due()

    async def query(self, *answers: StatusResult, **by: float) -> list[JobKind]:
        """Wait this long; the first network answers status queries with these in turn."""
        self.first.statuses.extend(answers)
        return await self.wait(**by)

    @contextmanager
    def without_first(self) -> Iterator[None]:
        """Within the block, this is a replica whose configuration lacks `first`."""
        known = self.networks.by_name
        self.networks.by_name = {name: each for name, each in known.items() if name != "first"}
        yield
        self.networks.by_name = known

    async def attempts(self) -> Sequence[Attempt]:
        """All attempts, oldest first."""
        return (await unit_of(self.store).list_attempts(AttemptQuery(limit=100)))[::-1]

    async def attempt(self, of: TransactionRecord | None = None) -> Attempt:
        """The only attempt, or the only one of a transaction."""
        attempts = await self.attempts()
        if of is not None:
            attempts = await unit_of(self.store).attempts_of(of.network_transaction_id)
        (found,) = attempts
        return found

    async def hint(self) -> None:
        """Note that an unproven notification about the only attempt came."""
        attempt, now = await self.attempt(), self.clock.now()
        await self.store.run(lambda unit: self.recorder.apply_hint(unit, attempt, now))

    async def record(self, answer: StatusResult, of: TransactionRecord | None = None) -> None:
        """Record the answer to a status query about `attempt(of)`."""
        attempt = await self.attempt(of)
        await self.store.run(lambda unit: self.asking.record(unit, attempt, answer))

    async def has_transaction(self, transaction_id: str = "T1") -> bool:
        found = await unit_of(self.store).transaction(SERVICE, transaction_id, LIVE)
        return found is not None

    async def transaction(self, transaction_id: str = "T1") -> TransactionRecord:
        found = await unit_of(self.store).transaction(SERVICE, transaction_id, LIVE)
        assert found is not None
        return found

    async def status(self, transaction_id: str = "T1") -> Status:
        return (await self.transaction(transaction_id)).status

    async def notification(self, number: int = 1) -> StoredNotification:
        found = await unit_of(self.store).raw_notification(number)
        assert found is not None
        return found

    async def notify(
        self,
        outcome: Outcome = Outcome.SUCCEEDED,
        *,
        attempt_id: str | None = None,
        reference: str = "",
        **fields: Any,
    ) -> None:
        """Receive and read a notification of the first network.

        It is signed and about the only attempt; `fields` replace those of the raw notification.
        """
        if attempt_id is None:
            attempt_id = (await self.attempt()).id
        self.first.notification = Notification(outcome, attempt_id, reference)
        plain = {"network": "first", "headers": VALID, "received_at": self.clock.now()}
        await self.notifications.receive(raw_notification(**{**plain, **fields}))
        await self.run_due()

    async def callbacks(self) -> Sequence[CallbackRecord]:
        return await unit_of(self.store).list_callbacks(every(SERVICE))

    async def balances(self) -> dict[str, Decimal]:
        """The balances that are not zero, by account name. Asserts that the ledger is sound."""
        assert await self.store.run(violations) == ()
        wallets = await unit_of(self.store).balances(None, None)
        found = dict(await unit_of(self.store).live_sums())
        texts = {str(account): amount for account, amount in found.items()}
        for account, balance in wallets.items():
            texts[f"{account} available"] = balance.available
            texts[f"{account} pending"] = balance.pending
        return {name: amount for name, amount in texts.items() if amount}


async def collected(**fields: Any) -> Desk:
    """A desk with one successful collection, T1, of 10.50."""
    desk = Desk(**fields)
    await desk.pay(PAID, operation=Operation.COLLECT)
    return desk
