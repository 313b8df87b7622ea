"""Random histories of collections, refunds, reversals, decisions of people, and time (D45, D44).

The network is honest and slow: what it says of a payment goes from pending to succeeded or failed,
and from succeeded to reversed. Its notifications may be late, double or forged.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any, TypeVar

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.operations import Operation
from sandbox_sim.payments.refunds import RefundRefused
from sandbox_sim.ports import Store
from sandbox_sim.ports.network import (
    Notification,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
)
from sandbox_sim.production.decisions import IllegalSettlement
from sandbox_sim.production.manual_actions import Decision
from sandbox_sim.records.attempts import Attempt, AttemptQuery, Terms
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status, TransactionRecord
from sandbox_sim.stores.memory.memory_store import MemoryStore
from tests import postgres
from tests.production.desk import LIVE, LOST, Desk, ScriptedNetwork
from tests.sample_records import SERVICE, every, violations

T = TypeVar("T")

CLEARING = "network/first/clearing/GHS"

PENDING, SUCCEEDED, FAILED, REVERSED = (
    *(Outcome.PENDING, Outcome.SUCCEEDED),
    *(Outcome.FAILED, Outcome.REVERSED),
)

REFUSALS = (RefundRefused, IllegalSettlement)

AN_HOUR = timedelta(hours=1)

HOLDS = {Status.PENDING, Status.SUCCESSFUL}

amounts = st.sampled_from(["6.50", "10"])
places = st.integers(0, 5)


@dataclass
class HonestNetwork(ScriptedNetwork):
    """says: what it says of each reference."""

    says: dict[str, Outcome] = field(default_factory=dict)

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        self.says.setdefault(request.reference, PENDING)
        return await super().submit(request)

    async def status(self, query: StatusQuery) -> StatusResult:
        return StatusResult(self.says[query.reference])


class RefundHistories(RuleBasedStateMachine):
    """A service whose collections are refunded and taken back."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.made = 0
        self.turn = 0

    @initialize()
    def open_the_desks(self) -> None:
        self.network = HonestNetwork()
        self.stack = AsyncExitStack()
        self.desks = self.run(self.opened())
        for _ in range(2):
            self.collect("10", lost=False)
            self.network_decides(-1, SUCCEEDED)
        self.time_passes({"seconds": 20})

    async def opened(self) -> list[Desk]:
        """The replicas of the gateway, which share the store and the clock."""
        clock = VirtualClock()
        terms = Terms(recheck_for=timedelta(days=300))
        return [
            Desk(terms, self.network, clock=clock, store=store, seed=seed)
            for seed, store in enumerate(await self.stores(clock))
        ]

    async def stores(self, clock: VirtualClock) -> Sequence[Store]:
        return [MemoryStore(clock)]

    @property
    def desk(self) -> Desk:
        """One replica after the other."""
        self.turn += 1
        return self.desks[self.turn % len(self.desks)]

    async def at_once(self, work: Callable[[Desk], Awaitable[object]]) -> None:
        """Do the same at every replica; what is refused is no matter."""
        done = await asyncio.gather(*map(work, self.desks), return_exceptions=True)
        for each in done:
            if isinstance(each, BaseException) and not isinstance(each, REFUSALS):
                raise each

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.in_the_end_all_agree())
        self.run(self.stack.aclose())
        self.runner.close()

    # What clients and people do.

    @rule(amount=amounts, lost=st.booleans())
    @precondition(lambda self: self.made < 3)
    def collect(self, amount: str, lost: bool) -> None:
        self.made += 1
        if lost:
            self.network.results.append(LOST)
        name = f"T{self.made}"
        fields = {"transaction_id": name, "amount": Decimal(amount)}
        self.run(self.desk.pay(operation=Operation.COLLECT, **fields))

    @rule(place=places, amount=st.none() | amounts)
    @precondition(lambda self: self.made)
    def refund(self, place: int, amount: str | None) -> None:
        name = f"T{place % self.made + 1}"
        self.run(self.at_once(lambda desk: desk.refund(name, amount)))

    @rule(place=places, status=st.sampled_from([Status.SUCCESSFUL, Status.FAILED]))
    @precondition(lambda self: self.network.says)
    def decide_by_hand(self, place: int, status: Status) -> None:
        network_id = self.attempt(place).network_transaction_id
        decision = Decision(status, "ama", "they told me so", force=True)
        self.run(self.at_once(lambda desk: desk.actions.settle(network_id, decision)))

    # What the network does.

    @rule(place=places, outcome=st.sampled_from([SUCCEEDED, FAILED]))
    @precondition(lambda self: self.network.says)
    def network_decides(self, place: int, outcome: Outcome) -> None:
        reference = self.attempt(place).reference
        if self.network.says[reference] is PENDING:
            self.network.says[reference] = outcome

    @rule(place=places)
    @precondition(lambda self: SUCCEEDED in self.network.says.values())
    def network_takes_back(self, place: int) -> None:
        successful = [name for name, said in self.network.says.items() if said is SUCCEEDED]
        self.network.says[successful[place % len(successful)]] = REVERSED

    @rule(place=places, signed=st.booleans(), twice=st.booleans(), late=st.booleans())
    @precondition(lambda self: self.network.says)
    def network_notifies(self, place: int, signed: bool, twice: bool, late: bool) -> None:
        attempt = self.attempt(place)
        said = self.network.says[attempt.reference]
        if late and said is REVERSED:
            said = SUCCEEDED
        self.network.notification = Notification(said, attempt_id=attempt.id)
        headers, at = {"x-signature": "valid" if signed else "forged"}, self.desk.clock.now()
        raw = RawNotification("first", "POST", "", "", headers, b"{}", at)
        for _ in range(1 + twice):
            self.run(self.at_once(lambda desk: desk.notifications.receive(raw)))
        self.run(self.at_once(lambda desk: desk.run_due()))

    @rule(by=st.sampled_from([{"seconds": 20}, {"minutes": 5}, {"days": 1}]))
    def time_passes(self, by: dict[str, float]) -> None:
        self.run(self.desk.wait(**by))

    # What must hold.

    @invariant()
    def the_ledger_is_sound(self) -> None:
        assert self.run(self.desk.store.run(violations)) == ()

    @invariant()
    def refunds_are_at_most_the_collection(self) -> None:
        found = {each.network_transaction_id: each for each in self.transactions()}
        paid: Counter[str] = Counter()
        for each in found.values():
            if each.refund_of is not None and each.status in HOLDS:
                paid[each.refund_of] += each.payment.amount  # type: ignore[assignment]
        assert all(amount <= found[of].payment.amount for of, amount in paid.items())

    async def in_the_end_all_agree(self) -> None:
        """Once the network has decided and was asked, clearing has what the network says."""
        for reference, said in self.network.says.items():
            if said is PENDING:
                self.network.says[reference] = FAILED
        for _ in range(3):
            await self.desk.wait(days=1)
        clearing = Decimal(0)
        for attempt in await self.attempts():
            if self.network.says[attempt.reference] is SUCCEEDED:
                out = attempt.operation is Operation.PAYOUT
                clearing += attempt.amount if out else -attempt.amount
        assert (await self.desk.balances()).get(CLEARING, Decimal(0)) == clearing

    def attempt(self, place: int) -> Attempt:
        oldest_first = self.run(self.attempts())[::-1]
        return oldest_first[place % len(oldest_first)]

    async def attempts(self) -> list[Attempt]:
        query = AttemptQuery(limit=100)
        return list(await self.desk.store.run(lambda unit: unit.list_attempts(query)))

    def transactions(self) -> list[TransactionRecord]:
        listing = every(SERVICE)._replace(mode=LIVE)
        return list(self.run(self.desk.store.run(lambda unit: unit.list_transactions(listing))))


class OnTwoReplicas(RefundHistories):
    """The same, where two replicas on one Postgres do everything at once."""

    async def stores(self, clock: VirtualClock) -> Sequence[Store]:
        url = postgres.empty_database()
        from sandbox_sim.stores.postgres.postgres_store import PostgresStore  # noqa: PLC0415

        opened = [PostgresStore(url, clock, lease=AN_HOUR) for _ in range(2)]
        for store in opened:
            await store.open()
            self.stack.push_async_callback(store.close)
        return opened


@pytest.mark.decision("D44", "D45")
def test_money_is_neither_made_nor_lost_and_refunds_are_at_most_what_was_collected() -> None:
    run_state_machine_as_test(RefundHistories, settings=settings(stateful_step_count=30))


@pytest.mark.decision("D44", "D45")
def test_the_same_holds_on_two_replicas() -> None:
    postgres.empty_database()  # skips the test if there is no Postgres
    shorter = settings(stateful_step_count=20)
    run_state_machine_as_test(OnTwoReplicas, settings=shorter)
