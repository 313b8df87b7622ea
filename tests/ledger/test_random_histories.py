"""Random histories of payments, reports of networks, and manual entries (D39, D44, D45).

The network decides each payment once: pending, then succeeded or failed. After that it may report a
failure as a success, of any amount, or reverse a success. Its answers get lost, and its
notifications may be late, repeated or forged. People act at one replica after the other, or two at
the same moment.

To add another action, add a rule to `Histories`; the invariants are checked after every step.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple, TypeVar

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

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ledger.books import Adjustment, BadEntry
from sandbox_sim.ledger.periods import Periods
from sandbox_sim.operations import Operation
from sandbox_sim.payments.refunds import RefundRefused
from sandbox_sim.ports import Store, Unit
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
from sandbox_sim.records.ledger import (
    MANUAL_REASONS,
    MOVING_KINDS,
    Account,
    AccountKind,
    Balance,
    LedgerLine,
    LedgerQuery,
    Reason,
    wallet_of,
)
from sandbox_sim.records.reports import WITHOUT_MONEY, Echo, Outcome
from sandbox_sim.records.transactions import Status, TransactionRecord
from sandbox_sim.values.vocabulary import Wallet
from tests import postgres
from tests.production.desk import LIVE, LOST, NOT_SENT, PENDING, SIGNED, Desk, ScriptedNetwork
from tests.sample_records import SERVICE, every, violations
from tests.stores.conftest import AN_HOUR, STORES

T = TypeVar("T")

EVERYTHING = 100_000

REFUSALS = (BadEntry, IllegalSettlement, RefundRefused)


COLLECTION = wallet_of(LIVE, SERVICE, Wallet.COLLECTION)

OURS = (AccountKind.CLEARING, AccountKind.FEES, AccountKind.SUSPENSE)

OF_NETWORKS = {AccountKind.CLEARING, AccountKind.ISSUED}

amounts = st.sampled_from(["0.01", "1", "2.50", "8", "10.50", "12"]).map(Decimal)

places = st.integers(0, 20)

operations = st.sampled_from([*[Operation.COLLECT] * 2, Operation.PAYOUT, Operation.AIRTIME])


@dataclass
class TruthfulNetwork(ScriptedNetwork):
    """status_of: its answer for each reference that it has."""

    status_of: dict[str, StatusResult] = field(default_factory=dict)

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        result = await super().submit(request)
        if result.outcome is not Outcome.NOT_SENT:
            self.status_of[request.reference] = StatusResult(Outcome.PENDING)
        return result

    async def status(self, query: StatusQuery) -> StatusResult:
        return self.status_of.get(query.reference, StatusResult(Outcome.UNKNOWN, found=False))


class Records(NamedTuple):
    """All that is stored of mode P, oldest first."""

    lines: Sequence[LedgerLine]
    attempts: Sequence[Attempt]
    transactions: Sequence[TransactionRecord]
    ours: dict[Account, Decimal]
    wallets: dict[Account, Balance]


async def read(unit: Unit) -> Records:
    assert await violations(unit) == ()
    lines = await unit.ledger_page(LedgerQuery(mode=LIVE, limit=EVERYTHING))
    attempts = await unit.list_attempts(AttemptQuery(limit=EVERYTHING))
    transactions = await unit.list_transactions(every(SERVICE)._replace(mode=LIVE))
    ours, wallets = await unit.live_sums(), await unit.balances(None, None)
    return Records(lines[::-1], attempts[::-1], transactions[::-1], dict(ours), dict(wallets))


def is_collected(attempt: Attempt) -> bool:
    return attempt.operation is Operation.COLLECT and attempt.outcome is Outcome.SUCCEEDED


class Histories(RuleBasedStateMachine):
    """Payments through networks, while people settle, refund, correct and close."""

    store: ClassVar[str] = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.network = TruthfulNetwork()
        self.clock = VirtualClock()
        self.turn = self.made = 0
        self.known: Records | None = None
        self.before: Sequence[LedgerLine] = []
        self.closed: list[tuple[Decimal, list[Decimal]]] = []

    @initialize()
    def open_the_desks(self) -> None:
        self.desks = self.do(self.opened())
        self.do(self.desk.fund("30"))
        self.top_up(30)
        for operation in (Operation.COLLECT, Operation.PAYOUT):
            # A person settles each as failed, and it succeeds after that with another amount: one
            # item in suspense above zero, and one below.
            self.pay(operation, Decimal("10.50"), PENDING)
            self.settle(-1, Status.FAILED, None, force=True, at_once=False)
            self.network_decides(-1, Outcome.SUCCEEDED, Decimal(8))
            self.ask(-1)
        for _ in range(2):
            self.pay(Operation.COLLECT, Decimal(12), LOST)
            self.network_decides(-1, Outcome.SUCCEEDED, None)
            self.ask(-1)

    async def opened(self) -> list[Desk]:
        """The replicas of the gateway, which share the store, the clock and the networks."""
        terms, networks = Terms(recheck_for=timedelta(days=300)), (self.network, self.network)
        stores = await self.stores()
        return [
            Desk(terms, *networks, clock=self.clock, store=store, seed=seed)
            for seed, store in enumerate(stores)
        ]

    async def stores(self) -> Sequence[Store]:
        return [await self.stack.enter_async_context(STORES[self.store](self.clock))]

    @property
    def desk(self) -> Desk:
        """One replica after the other."""
        self.turn += 1
        return self.desks[self.turn % len(self.desks)]

    @property
    def records(self) -> Records:
        """The stored records after the last action."""
        if self.known is None:
            self.known = self.look(self.desk.store.run(read))
        return self.known

    def look(self, work: Coroutine[Any, Any, T]) -> T:
        # Not `run`: to handle Ctrl-C it formats the result of the previous call as text.
        return self.runner.get_loop().run_until_complete(work)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        self.known = None
        return self.look(work)

    def enter(self, act: Callable[[Desk], Awaitable[object]], *, at_once: bool) -> None:
        """One person tries, or two at the same moment; if the books refuse, no line is added."""
        before = self.records.lines
        desks = [self.desk for _ in range(1 + at_once)]

        async def tried() -> list[object]:
            return await asyncio.gather(*map(act, desks), return_exceptions=True)

        done = self.do(tried())
        for each in done:
            if isinstance(each, BaseException) and not isinstance(each, REFUSALS):
                raise each
        if all(isinstance(each, BadEntry) for each in done):
            assert self.records.lines == before

    def correct(self, act: Callable[[Desk], Awaitable[object]], *, at_once: bool) -> None:
        """A correction takes at most the amount of a payment out of suspense."""
        before = self.suspense()
        self.enter(act, at_once=at_once)
        left = self.suspense()
        assert all(left[subject] * amount >= 0 for subject, amount in before.items())

    def suspense(self) -> dict[str, Decimal]:
        """The amount of each payment in suspense."""
        return self.moved({AccountKind.SUSPENSE}, self.records.lines)

    @staticmethod
    def moved(kinds: set[AccountKind], lines: Sequence[LedgerLine]) -> dict[str, Decimal]:
        """The amount of each payment that the lines move into accounts of these kinds."""
        found: dict[str, Decimal] = defaultdict(Decimal)
        for made in (line.transfer for line in lines if line.transfer.kind in MOVING_KINDS):
            found[made.subject] += made.amount * (made.credit.kind in kinds)
            found[made.subject] -= made.amount * (made.debit.kind in kinds)
        return found

    def attempt(
        self, place: int, fits: Callable[[Attempt], bool] = lambda _attempt: True
    ) -> Attempt:
        """One of the attempts that fit, or of all if no attempt fits."""
        found = [each for each in self.records.attempts if fits(each)] or self.records.attempts
        return found[place % len(found)]

    # Actions of clients and of the network.

    @rule(operation=operations, amount=amounts, result=st.sampled_from([PENDING, LOST, NOT_SENT]))
    def pay(self, operation: Operation, amount: Decimal, result: SubmitResult) -> None:
        self.made += 1
        self.network.results.extend([result] * 2)
        fields = {"amount": amount, "transaction_id": f"T{self.made}"}
        self.do(self.desk.pay(operation=operation, **fields))
        self.network.results.clear()

    @rule(
        place=places,
        outcome=st.sampled_from([Outcome.SUCCEEDED, Outcome.FAILED, Outcome.REVERSED]),
        amount=st.none() | amounts,
    )
    def network_decides(self, place: int, outcome: Outcome, amount: Decimal | None) -> None:
        """The network decides a payment, reports a failure as a success, or reverses a success."""
        attempt = self.attempt(place, lambda each: outcome in self.may_follow(each))
        if outcome in self.may_follow(attempt):
            amount = amount or attempt.amount
            echo = Echo(amount=amount if outcome is Outcome.SUCCEEDED else None)
            self.network.status_of[attempt.reference] = StatusResult(outcome, echo=echo)

    def may_follow(self, attempt: Attempt) -> set[Outcome]:
        """The outcomes that the network may report next of an attempt."""
        reported = self.network.status_of.get(
            attempt.reference, StatusResult(Outcome.UNKNOWN)
        ).outcome
        if reported is Outcome.FAILED and attempt.outcome is not Outcome.SUCCEEDED:
            return {Outcome.SUCCEEDED}
        follows = {
            Outcome.PENDING: {Outcome.SUCCEEDED, Outcome.FAILED},
            Outcome.SUCCEEDED: {Outcome.REVERSED},
        }
        return follows.get(reported, set())

    @rule(place=places, signed=st.booleans(), twice=st.booleans(), late=st.booleans())
    def network_notifies(self, place: int, signed: bool, twice: bool, late: bool) -> None:
        attempt = self.attempt(place)
        reported = self.network.status_of.get(attempt.reference)
        if reported is None:
            return
        is_late = late and reported.outcome is Outcome.REVERSED
        outcome = Outcome.SUCCEEDED if is_late else reported.outcome
        self.network.notification = Notification(outcome, attempt_id=attempt.id, echo=reported.echo)
        headers = {"x-signature": "valid" if signed else "forged"}
        raw = RawNotification("first", "POST", "", "", headers, b"{}", self.clock.now())
        for _ in range(1 + twice):
            self.enter(lambda desk: desk.notifications.receive(raw), at_once=True)
        self.enter(Desk.run_due, at_once=True)

    @rule(by=st.sampled_from([{"seconds": 20}, {"minutes": 5}, {"hours": 7}, {"days": 1}]))
    def time_passes(self, by: dict[str, float]) -> None:
        self.do(self.desk.wait(**by))

    # Actions of people.

    @rule(place=places)
    def ask(self, place: int) -> None:
        network_id = self.attempt(place).network_transaction_id
        self.do(self.desk.asking.ask_by_hand(network_id, SERVICE))

    @rule(place=places, amount=st.none() | amounts, at_once=st.booleans())
    def refund(self, place: int, amount: Decimal | None, at_once: bool) -> None:
        name = self.attempt(place, is_collected).transaction_id
        given = None if amount is None else str(amount)
        self.enter(lambda desk: desk.refund(name, given), at_once=at_once)

    @rule(
        place=places,
        status=st.sampled_from([Status.SUCCESSFUL, Status.FAILED, Status.CANCELLED]),
        amount=st.none() | amounts,
        force=st.booleans(),
        at_once=st.booleans(),
    )
    def settle(
        self, place: int, status: Status, amount: Decimal | None, *, force: bool, at_once: bool
    ) -> None:
        network_id = self.attempt(place, lambda each: each.is_open).network_transaction_id
        decision = Decision(status, "ama", "by phone", force=force, amount=amount)
        self.enter(lambda desk: desk.actions.settle(network_id, decision), at_once=at_once)

    @rule(
        place=places,
        to=st.sampled_from([AccountKind.FEES, AccountKind.CLEARING, AccountKind.WALLET]),
        amount=st.sampled_from([None, Decimal("0.50"), Decimal(11), Decimal(25)]),
        at_once=st.booleans(),
    )
    @precondition(lambda self: any(self.suspense().values()))
    def resolve(self, place: int, to: AccountKind, amount: Decimal | None, at_once: bool) -> None:
        items = [subject for subject, amount in self.suspense().items() if amount]
        subject = items[place % len(items)]
        self.correct(lambda desk: desk.books.resolve(subject, to, amount, SIGNED), at_once=at_once)

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
        subject = self.attempt(place).network_transaction_id
        order = Adjustment(SERVICE, wallet, ours, amount, adds, "first", subject)
        self.correct(lambda desk: desk.books.adjust(order, SIGNED), at_once=False)

    @rule(units=st.integers(1, 20))
    def top_up(self, units: int) -> None:
        top_up = SERVICE, Wallet.AIRTIME, units, SIGNED
        self.enter(lambda desk: desk.books.topup(*top_up), at_once=False)

    @rule(place=places, at_once=st.booleans())
    def reverse(self, place: int, at_once: bool) -> None:
        entries = [each for each in self.records.lines if each.manual is not None]
        number = entries[place % len(entries)].number
        self.correct(lambda desk: desk.books.reverse(number, SIGNED), at_once=at_once)

    @rule(hours=st.sampled_from([0, 0, 1, 30]), at_once=st.booleans())
    def close(self, hours: int, at_once: bool) -> None:
        until = self.clock.now() - timedelta(hours=hours)

        async def closing(desk: Desk) -> None:
            closed = await Periods(desk.store, self.clock).close(SERVICE, "GHS", until, SIGNED)
            assert closed.closing is not None
            amounts_of_lines = [each.amount for each in closed.lines]
            self.closed.append((closed.closing.transfer.amount, amounts_of_lines))

        self.enter(closing, at_once=at_once)
        self.closed_periods_keep_their_lines_and_totals()

    # Invariants after each step; `read` asserts the rules of the ledger.

    @invariant()
    def every_transfer_balances_and_no_wallet_is_below_zero(self) -> None:
        sums: dict[str, Decimal] = defaultdict(Decimal)
        for account, amount in self.records.ours.items():
            sums[account.asset] += amount
        for account, balance in self.records.wallets.items():
            sums[account.asset] += balance.amount
            assert min(balance.available, balance.pending) >= 0
        assert not any(sums.values()), sums

    @invariant()
    def no_line_is_changed_or_deleted(self) -> None:
        lines = self.records.lines
        assert lines[: len(self.before)] == self.before
        self.before = lines

    @invariant()
    def every_manual_entry_has_a_name_and_a_reason_and_is_reversed_once(self) -> None:
        for line in self.records.lines:
            if line.transfer.reason in MANUAL_REASONS | {Reason.TOPUP}:
                assert line.manual is not None
                assert line.manual.by
                assert line.manual.why
        reversed_entries = [each.manual.reverses for each in self.records.lines if each.manual]
        once = Counter(number for number in reversed_entries if number is not None)
        assert set(once.values()) <= {1}
        for attempt in self.records.attempts:
            assert bool(attempt.settled_by) == bool(attempt.settled_reason)
        for each in self.records.transactions:
            assert each.refund_of is None or (each.refunded_by and each.refund_reason)

    @invariant()
    def refunds_are_at_most_the_collection(self) -> None:
        collected = {each.network_transaction_id: each for each in self.records.attempts}
        paid: Counter[str] = Counter()
        for each in self.records.attempts:
            if each.refund_of and each.outcome not in WITHOUT_MONEY:
                paid[each.refund_of] += each.moved_amount  # type: ignore[assignment]
        assert all(amount <= collected[of].moved_amount for of, amount in paid.items())

    @invariant()
    def suspense_lists_the_amount_of_each_payment(self) -> None:
        listed = self.look(self.desk.books.suspense())
        amounts = {subject: amount for subject, amount in self.suspense().items() if amount}
        assert {each.network_transaction_id: each.amount for each in listed} == amounts

    @invariant()
    def the_open_period_sums_to_the_balance_of_the_wallet(self) -> None:
        periods = Periods(self.desk.store, self.clock)
        found = self.look(periods.statement(SERVICE, "GHS", None))
        balance = self.records.wallets.get(COLLECTION)
        assert found.total == (0 if balance is None else balance.available)

    def closed_periods_keep_their_lines_and_totals(self) -> None:
        periods = Periods(self.desk.store, self.clock)
        for period, (paid, amounts_of_lines) in enumerate(self.closed, 1):
            found = self.look(periods.statement(SERVICE, "GHS", period))
            assert [each.amount for each in found.lines] == amounts_of_lines
            assert found.total == paid

    # Checks at the end of a history.

    def teardown(self) -> None:
        try:
            if self.made:
                self.end_open_attempts()
                self.closed_periods_keep_their_lines_and_totals()
                self.clearing_agrees_with_the_network()
                self.suspense_can_be_emptied()
        finally:
            self.do(self.stack.aclose())
            self.runner.close()

    def end_open_attempts(self) -> None:
        """The network decides and is asked; a person settles attempts with another amount."""
        for reference, reported in self.network.status_of.items():
            if reported.outcome is Outcome.PENDING:
                self.network.status_of[reference] = StatusResult(Outcome.FAILED)
        for place in range(len(self.records.attempts)):
            self.ask(place)
        for attempt in self.records.attempts:
            if attempt.is_open:
                amount = self.network.status_of[attempt.reference].echo.amount or attempt.amount
                if attempt.spends:  # an amount above that is a case for `adjust`
                    amount = min(amount, attempt.amount)
                # `settle` takes one of the open attempts, and this is the first of them.
                self.settle(0, Status.SUCCESSFUL, amount, force=True, at_once=False)
        assert not any(each.is_open for each in self.records.attempts)

    def clearing_agrees_with_the_network(self) -> None:
        """Only a success of another amount differs, and is listed for people."""
        ours = [each for each in self.records.lines if each.manual is None]
        moved = self.moved(OF_NETWORKS, ours)
        for attempt in self.records.attempts:
            reported = self.network.status_of.get(attempt.reference)
            listed = attempt.outcome is Outcome.SUCCEEDED and attempt.mismatch
            if listed or reported is None:
                continue
            amount = reported.echo.amount if reported.outcome is Outcome.SUCCEEDED else None
            sign = 1 if attempt.spends else -1
            assert moved[attempt.network_transaction_id] == sign * (amount or 0), attempt

    def suspense_can_be_emptied(self) -> None:
        for subject in [subject for subject, amount in self.suspense().items() if amount]:
            self.do(self.desk.books.resolve(subject, AccountKind.FEES, None, SIGNED))
        assert not any(self.suspense().values())


class OnSqlite(Histories):
    store = "sqlite"


class OnPostgres(Histories):
    store = "postgres"


class OnTwoReplicas(Histories):
    """Two replicas on one Postgres."""

    async def stores(self) -> Sequence[Store]:
        url = postgres.empty_database()
        from sandbox_sim.stores.postgres.postgres_store import PostgresStore  # noqa: PLC0415

        opened = [PostgresStore(url, self.clock, lease=AN_HOUR) for _ in range(2)]
        for store in opened:
            await store.open()
            self.stack.push_async_callback(store.close)
        return opened


pytestmark = pytest.mark.decision("D39", "D44", "D45")


def test_random_histories_keep_the_invariants_in_memory() -> None:
    run_state_machine_as_test(Histories, settings=settings(stateful_step_count=40))


@pytest.mark.parametrize("machine", [OnSqlite, OnPostgres, OnTwoReplicas])
def test_random_histories_keep_the_invariants_in_a_database(machine: type[Histories]) -> None:
    if machine is not OnSqlite:
        postgres.empty_database()  # skips the test if there is no Postgres
    fewer = max(2, settings().max_examples // 6)
    run_state_machine_as_test(
        machine, settings=settings(max_examples=fewer, stateful_step_count=25)
    )
