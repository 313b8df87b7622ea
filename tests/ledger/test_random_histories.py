"""Any history of payments and of what people enter leaves sound books (D39, D44).

To let another act take part, add a rule to `Histories`; the invariants ask after every step.
"""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.ledger.books import Adjustment, BadEntry
from sandbox_sim.ledger.periods import Periods
from sandbox_sim.operations import Operation
from sandbox_sim.ports import Store
from sandbox_sim.ports.network import StatusResult, SubmitResult
from sandbox_sim.production.decisions import IllegalSettlement
from sandbox_sim.production.manual_actions import Decision
from sandbox_sim.records.attempts import Attempt, AttemptQuery
from sandbox_sim.records.ledger import (
    BY_HAND,
    AccountKind,
    LedgerLine,
    LedgerQuery,
    Reason,
    wallet_of,
)
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.vocabulary import Wallet
from tests.production.desk import LIVE, SIGNED, Desk
from tests.sample_records import SERVICE
from tests.stores.conftest import STORES

T = TypeVar("T")

EVERYTHING = 100_000

OURS = (AccountKind.CLEARING, AccountKind.FEES, AccountKind.SUSPENSE)

amounts = st.sampled_from(["0.01", "1", "2.50", "8", "10.50", "12"]).map(Decimal)

places = st.integers(0, 20)

operations = st.sampled_from([Operation.COLLECT, Operation.PAYOUT, Operation.AIRTIME])

outcomes = st.sampled_from([Outcome.PENDING, Outcome.SUCCEEDED, Outcome.FAILED])


class Histories(RuleBasedStateMachine):
    """Pays through networks that say anything, while people settle, correct and close."""

    store: ClassVar[str] = "memory"

    @initialize()
    def start(self) -> None:
        self.runner = asyncio.Runner()
        self.clock = VirtualClock()
        self.opened: AbstractAsyncContextManager[Store] = STORES[self.store](self.clock)
        store = self.do(self.opened.__aenter__())
        self.desk = Desk(clock=self.clock, store=store)
        self.periods = Periods(self.desk.store, self.clock)
        self.seen: Sequence[LedgerLine] = []
        self.closed: list[tuple[Decimal, list[Decimal]]] = []
        self.count = 0
        self.do(self.desk.fund("30"))
        self.top_up(30)
        for operation in (Operation.COLLECT, Operation.PAYOUT):
            # Each is called failed, and succeeds after that: one item above zero, and one below.
            self.pay(operation, Decimal("10.50"), Outcome.PENDING)
            self.settle(0, Status.FAILED, None, force=True)
            self.hear(0, Outcome.SUCCEEDED, None)
        self.pay(Operation.COLLECT, Decimal(12), Outcome.SUCCEEDED)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def enter(self, work: Coroutine[Any, Any, object]) -> None:
        """Let a person try, a minute later; what the books refuse changes nothing.

        Nothing takes more out of suspense than stands there for a payment.
        """
        self.clock.move_to(self.clock.now() + timedelta(minutes=1))
        before, stood = self.lines(), self.suspense()
        try:
            self.do(work)
        except (BadEntry, IllegalSettlement):
            assert self.lines() == before
        stands = self.suspense()
        assert all(stands.get(subject, 0) * amount >= 0 for subject, amount in stood.items())

    def suspense(self) -> dict[str, Decimal]:
        """What stands in suspense for each payment."""
        items = self.do(self.desk.books.suspense())
        return {each.network_transaction_id: each.amount for each in items}

    def lines(self, **query: Any) -> Sequence[LedgerLine]:
        """The lines of mode P, oldest first."""
        asked = LedgerQuery(mode=LIVE, limit=EVERYTHING, **query)
        return self.do(self.desk.store.run(lambda unit: unit.ledger_page(asked)))[::-1]

    def chosen(self, place: int) -> Attempt | None:
        query = AttemptQuery(limit=EVERYTHING)
        found = self.do(self.desk.store.run(lambda unit: unit.list_attempts(query)))
        return found[place % len(found)] if found else None

    # What clients and networks do.

    @rule(operation=operations, amount=amounts, outcome=outcomes)
    def pay(self, operation: Operation, amount: Decimal, outcome: Outcome) -> None:
        self.count += 1
        result = SubmitResult(outcome)
        for network in (self.desk.first, self.desk.second):
            network.results.append(result)
        name = f"T{self.count}"
        self.do(self.desk.pay(operation=operation, amount=amount, transaction_id=name))
        for network in (self.desk.first, self.desk.second):
            network.results.clear()

    @rule(place=places, outcome=outcomes, amount=st.none() | amounts)
    def hear(self, place: int, outcome: Outcome, amount: Decimal | None) -> None:
        """The network says something: late, again, otherwise, or of another amount."""
        attempt = self.chosen(place)
        if attempt is None:
            return
        result = StatusResult(outcome, echo=Echo(amount=amount))

        async def work(unit: Any) -> None:
            found = await unit.attempt(attempt.id)
            await self.desk.asking.record(unit, found, result)

        self.do(self.desk.store.run(work))

    @rule(hours=st.integers(1, 30))
    def wait(self, hours: int) -> None:
        self.clock.move_to(self.clock.now() + timedelta(hours=hours))

    # What people do.

    @rule(
        place=places,
        status=st.sampled_from([Status.SUCCESSFUL, Status.FAILED, Status.CANCELLED]),
        amount=st.none() | amounts,
        force=st.booleans(),
    )
    def settle(self, place: int, status: Status, amount: Decimal | None, *, force: bool) -> None:
        attempt = self.chosen(place)
        if attempt is not None:
            decision = Decision(status, "ama", "by phone", force=force, amount=amount)
            self.enter(self.desk.actions.settle(attempt.network_transaction_id, decision))

    @rule(
        place=places,
        to=st.sampled_from([AccountKind.FEES, AccountKind.CLEARING, AccountKind.WALLET]),
        amount=st.sampled_from([None, Decimal("0.50"), Decimal(11), Decimal(25)]),
    )
    def resolve(self, place: int, to: AccountKind, amount: Decimal | None) -> None:
        items = self.do(self.desk.books.suspense())
        if items:
            subject = items[place % len(items)].network_transaction_id
            self.enter(self.desk.books.resolve(subject, to, amount, SIGNED))

    @rule(
        place=places,
        wallet=st.sampled_from([Wallet.COLLECTION, Wallet.PAYOUT]),
        ours=st.sampled_from(OURS),
        amount=amounts,
        adds=st.booleans(),
    )
    def adjust(
        self, place: int, wallet: Wallet, ours: AccountKind, amount: Decimal, *, adds: bool
    ) -> None:
        attempt = self.chosen(place)
        subject = "" if attempt is None else attempt.network_transaction_id
        asked = Adjustment(SERVICE, wallet, ours, amount, adds, "first", subject)
        self.enter(self.desk.books.adjust(asked, SIGNED))

    @rule(units=st.integers(1, 20))
    def top_up(self, units: int) -> None:
        self.enter(self.desk.books.topup(SERVICE, Wallet.AIRTIME, units, SIGNED))

    @rule(place=places)
    def reverse(self, place: int) -> None:
        entries = [each for each in self.lines() if each.manual is not None]
        number = entries[place % len(entries)].number
        self.enter(self.desk.books.reverse(number, SIGNED))

    @rule(hours=st.sampled_from([0, 0, 1, 30]))
    def close(self, hours: int) -> None:
        until = self.clock.now() - timedelta(hours=hours)

        async def work() -> None:
            closed = await self.periods.close(SERVICE, "GHS", until, SIGNED)
            assert closed.closing is not None
            amounts_of_lines = [each.amount for each in closed.lines]
            self.closed.append((closed.closing.transfer.amount, amounts_of_lines))

        self.enter(work())

    # What holds after each step.

    @invariant()
    def the_ledger_breaks_no_rule(self) -> None:
        self.do(self.desk.balances())  # asserts it

    @invariant()
    def every_transfer_balances(self) -> None:
        sums: dict[str, Decimal] = defaultdict(Decimal)
        for account, amount in self.do(self.desk.store.run(lambda unit: unit.live_sums())).items():
            sums[account.asset] += amount
        wallets = self.do(self.desk.store.run(lambda unit: unit.balances(None, None)))
        for account, balance in wallets.items():
            sums[account.asset] += balance.amount
        assert not any(sums.values()), sums

    @invariant()
    def nothing_is_changed_or_deleted(self) -> None:
        lines = self.lines()
        assert lines[: len(self.seen)] == self.seen
        self.seen = lines

    @invariant()
    def every_entry_of_a_person_is_signed(self) -> None:
        for line in self.lines():
            if line.transfer.reason in BY_HAND | {Reason.TOPUP}:
                assert line.manual is not None
                assert line.manual.by
                assert line.manual.why

    @invariant()
    def suspense_is_what_stands_there_for_payments(self) -> None:
        items: dict[str, Decimal] = defaultdict(Decimal)
        for each in self.do(self.desk.books.suspense()):
            items[f"suspense/{each.asset}"] += each.amount
        balances = self.do(self.desk.balances())
        assert {name: has for name, has in balances.items() if name.startswith("suspense")} == {
            name: amount for name, amount in items.items() if amount
        }

    @invariant()
    def a_closed_period_stays_and_sums_to_what_was_paid(self) -> None:
        for period, (paid, amounts_of_lines) in enumerate(self.closed, 1):
            found = self.do(self.periods.statement(SERVICE, "GHS", period))
            assert [each.amount for each in found.lines] == amounts_of_lines
            assert found.total == paid

    @invariant()
    def the_open_period_is_what_the_wallet_has(self) -> None:
        found = self.do(self.periods.statement(SERVICE, "GHS", None))
        wallet = wallet_of(LIVE, SERVICE, Wallet.COLLECTION)
        balance = self.do(self.desk.store.run(lambda unit: unit.balance(wallet)))
        assert found.total == (0 if balance is None else balance.available)

    def teardown(self) -> None:
        """Suspense can be emptied after any history."""
        try:
            for each in self.do(self.desk.books.suspense()):
                subject = each.network_transaction_id
                self.do(self.desk.books.resolve(subject, AccountKind.FEES, None, SIGNED))
            assert self.do(self.desk.books.suspense()) == []
            assert not [name for name in self.do(self.desk.balances()) if name.startswith("susp")]
        finally:
            self.do(self.opened.__aexit__(None, None, None))
            self.runner.close()


class HistoriesOnSqlite(Histories):
    store = "sqlite"


class HistoriesOnPostgres(Histories):
    store = "postgres"


pytestmark = [pytest.mark.decision("D39"), pytest.mark.decision("D44")]


def test_in_memory() -> None:
    run_state_machine_as_test(Histories, settings=settings(stateful_step_count=40))


@pytest.mark.parametrize("machine", [HistoriesOnSqlite, HistoriesOnPostgres])
def test_in_a_database(machine: type[Histories]) -> None:
    short = settings(max_examples=2, stateful_step_count=20)
    run_state_machine_as_test(machine, settings=short)
