"""Manual entries and settlements on every store: periods, and several actions at once (D44)."""

import asyncio
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ledger.books import Adjustment, BadEntry, Books
from sandbox_sim.ledger.periods import Periods, Statement
from sandbox_sim.operations import Operation
from sandbox_sim.ports import Store
from sandbox_sim.ports.network import StatusResult
from sandbox_sim.production.decisions import IllegalSettlement
from sandbox_sim.production.manual_actions import Decision, SettledByHand
from sandbox_sim.records.ledger import AccountKind, LedgerLine, Reason, TransferKind, make_transfer
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.vocabulary import Wallet
from tests.live_records import CLEARING, COLLECTION, attempt
from tests.production.desk import LOST, SIGNED, Desk
from tests.sample_records import NOW, SERVICE, violations
from tests.stores.conftest import OpenStore
from tests.units import unit_of

DAY = timedelta(days=1)

pytestmark = pytest.mark.decision("D44")


class Merchant:
    """Collects for one service into a store, and closes its periods."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self.store, self.clock = store, clock
        self.books, self.periods = Books(store, clock, ["mtn"]), Periods(store, clock)

    async def collects(self, *amounts: str, reason: Reason = Reason.COLLECTED) -> None:
        for amount in amounts:
            at = self.clock.now()
            moved = make_transfer(
                reason, COLLECTION, Decimal(amount), f"P{amount}", at, network="mtn"
            )
            await unit_of(self.store).add_transfer(moved)

    async def sets_aside(self, amount: str) -> LedgerLine:
        """Add a pending transfer, as a refund does until its network confirms it."""
        kind, at = TransferKind.PENDING, self.clock.now()
        moved = make_transfer(Reason.SPENT, COLLECTION, Decimal(amount), "R1", at, kind=kind)
        number = await unit_of(self.store).add_transfer(moved)
        return LedgerLine(number, moved)

    async def closes(self, until: datetime | None = None) -> Statement:
        return await self.periods.close(SERVICE, "GHS", until or self.clock.now(), SIGNED)

    async def statement(self, period: int | None = None) -> list[Decimal]:
        found = await self.periods.statement(SERVICE, "GHS", period)
        return [each.amount for each in found.lines]

    async def available(self) -> Decimal:
        balance = await unit_of(self.store).balance(COLLECTION)
        return Decimal(0) if balance is None else balance.available

    def later(self, by: timedelta = DAY) -> datetime:
        self.clock.move_to(self.clock.now() + by)
        return self.clock.now()


@pytest.fixture
def merchant(store: Store, clock: VirtualClock) -> Merchant:
    return Merchant(store, clock)


async def test_each_closing_pays_out_the_lines_of_its_period_in_one_entry(
    merchant: Merchant,
) -> None:
    await merchant.collects("10.50", "20")
    until = merchant.later()
    await merchant.collects("7")
    merchant.later()

    closed = await merchant.closes(until)

    assert (closed.period, closed.since, closed.until) == (1, None, until)
    assert closed.total == Decimal("30.50")
    assert closed.closing is not None
    moved = closed.closing.transfer
    assert (moved.reason, moved.amount, moved.debit) == (Reason.CLOSED, closed.total, COLLECTION)
    assert str(moved.credit) == "network/merchants/clearing/GHS"
    assert await merchant.available() == 7
    assert await merchant.statement() == [7]

    second = await merchant.closes(merchant.later())

    assert (second.period, second.since, second.total) == (2, until, Decimal(7))
    periods = [await merchant.statement(each) for each in (1, 2, None)]
    assert periods == [[Decimal("10.50"), 20], [7], []]
    assert await merchant.available() == 0
    assert await merchant.store.run(violations) == ()


async def test_a_late_line_and_a_correction_belong_to_the_open_period(merchant: Merchant) -> None:
    await merchant.collects("10")
    closed_at = merchant.later()
    await merchant.closes(closed_at)
    late = make_transfer(Reason.COLLECTED, COLLECTION, Decimal(5), "late", closed_at - DAY / 2)
    await unit_of(merchant.store).add_transfer(late)
    wrong = Adjustment(SERVICE, Wallet.COLLECTION, AccountKind.FEES, Decimal(3), adds=False)
    await merchant.books.adjust(wrong, SIGNED)

    assert await merchant.statement(1) == [10]
    assert await merchant.statement() == [5, -3]
    assert (await merchant.closes(merchant.later())).total == 2


async def test_a_pending_amount_is_not_paid_out(merchant: Merchant) -> None:
    await merchant.collects("10", "20")
    posted, voided = await merchant.sets_aside("4"), await merchant.sets_aside("5")
    assert (await merchant.closes(merchant.later())).total == 21

    at = merchant.clock.now()
    for end in (posted.posted(at, CLEARING, Decimal(3)), voided.voided(at)):
        await unit_of(merchant.store).add_transfer(end)

    assert await merchant.statement() == [1, 5]
    assert await merchant.available() == 6


async def test_a_reversed_closing_is_paid_out_with_the_next_period(merchant: Merchant) -> None:
    await merchant.collects("10")
    closed = await merchant.closes(merchant.later())
    assert closed.closing is not None

    await merchant.books.reverse(closed.closing.number, SIGNED)

    assert await merchant.statement(1) == await merchant.statement() == [10]
    assert (await merchant.closes(merchant.later())).period == 2
    assert await merchant.available() == 0


async def test_an_invalid_closing_is_refused_with_its_reason(merchant: Merchant) -> None:
    with pytest.raises(BadEntry, match="nothing to close: 0 lines before"):
        await merchant.closes()
    with pytest.raises(BadEntry, match="service 55 has 0 closed periods"):
        await merchant.statement(1)
    await merchant.collects("10")
    with pytest.raises(BadEntry, match="a period must end in the past"):
        await merchant.closes(merchant.clock.now() + DAY)

    until = merchant.later()
    aside = await merchant.sets_aside("4")
    with pytest.raises(BadEntry, match="has 6, less than 10"):
        await merchant.closes(until)
    await unit_of(merchant.store).add_transfer(aside.voided(until))

    await merchant.closes(until)
    for again in (until, until - DAY):
        with pytest.raises(BadEntry, match="is closed, in period 1: the next period ends after"):
            await merchant.closes(again)


async def test_only_one_of_several_closings_at_once_succeeds(merchant: Merchant) -> None:
    await merchant.collects("10")
    until = merchant.later()
    await merchant.collects("50")  # enough to pay the period out again

    done = await asyncio.gather(*(merchant.closes(until) for _ in range(4)), return_exceptions=True)

    assert sorted(type(each).__name__ for each in done) == ["BadEntry"] * 3 + ["Statement"]
    assert await merchant.available() == 50


async def test_only_one_of_several_resolutions_and_reversals_at_once_succeeds(
    store: Store, clock: VirtualClock
) -> None:
    came_in = make_transfer(
        Reason.SUSPENDED, COLLECTION, Decimal(5), "10000000001", NOW, network="mtn"
    )
    suspense = came_in._replace(debit=came_in.credit, credit=came_in.debit)

    await unit_of(store).add_attempt(attempt(), "{}")
    await unit_of(store).add_transfer(suspense)
    books, fees = Books(store, clock, ["mtn"]), AccountKind.FEES

    resolved = await asyncio.gather(
        *(books.resolve("10000000001", fees, None, SIGNED) for _ in range(4)),
        return_exceptions=True,
    )
    (entry,) = (each for each in resolved if isinstance(each, LedgerLine))
    reversed_ones = await asyncio.gather(
        *(books.reverse(entry.number, SIGNED) for _ in range(4)), return_exceptions=True
    )

    for done in (resolved, reversed_ones):
        assert sorted(type(each).__name__ for each in done) == ["BadEntry"] * 3 + ["LedgerLine"]
    (item,) = await books.suspense()
    found = (item.network_transaction_id, item.amount, item.network)
    assert found == ("10000000001", Decimal(5), "mtn")
    assert await store.run(violations) == ()


async def test_a_long_statement_is_read_in_parts(
    open_store: OpenStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox_sim.ledger.periods._PAGE_SIZE", 2)
    async with open_store(clock) as store:
        merchant = Merchant(store, clock)
        await merchant.collects("1", "2", "3", "4", "5")
        await merchant.closes(merchant.later())
        await merchant.collects("6")

        assert await merchant.statement(1) == [1, 2, 3, 4, 5]
        assert await merchant.statement() == [6]


SILENT = StatusResult(Outcome.UNKNOWN, reason="no answer")

LEFT = {Status.FAILED: Decimal(15), Status.SUCCESSFUL: Decimal("4.50")}


@pytest.fixture
async def desk(store: Store, clock: VirtualClock) -> Desk:
    """A desk with a payout about which the network has been silent for a day."""
    desk = Desk(clock=clock, store=store)
    await desk.fund("15")
    desk.first.results.append(LOST)
    await desk.pay(operation=Operation.PAYOUT)
    await desk.wait(days=1)
    return desk


@pytest.mark.parametrize(
    "decided", [(Status.FAILED, Status.FAILED), (Status.FAILED, Status.SUCCESSFUL)]
)
async def test_only_one_of_two_settlements_at_once_counts(
    desk: Desk, store: Store, decided: tuple[Status, Status]
) -> None:
    (attempt,) = await desk.attempts()
    desk.first.statuses.extend([SILENT] * len(decided))

    ends = await asyncio.gather(
        *(
            desk.actions.settle(attempt.network_transaction_id, Decision(to, f"ama {n}", "seen"))
            for n, to in enumerate(decided)
        ),
        return_exceptions=True,
    )

    (settled,) = [each for each in ends if isinstance(each, SettledByHand)]
    (refused,) = [each for each in ends if isinstance(each, BaseException)]
    assert isinstance(refused, IllegalSettlement)
    status = settled.transaction.status
    assert (await desk.balances())["service/55/payout/GHS available"] == LEFT[status]
    (kept,) = await unit_of(store).decisions_of(attempt.id)
    assert kept.status is status
    assert len(await desk.callbacks()) == 1


async def test_a_settlement_and_a_network_status_at_once_move_the_money_once(
    desk: Desk, clock: VirtualClock
) -> None:
    (attempt,) = await desk.attempts()
    desk.first.statuses.extend([SILENT, StatusResult(Outcome.FAILED)])
    clock.move_to(attempt.next_ask_at or clock.now())
    decision = Decision(Status.FAILED, "ama", "seen")

    await asyncio.gather(
        desk.actions.settle(attempt.network_transaction_id, decision),
        desk.run_due(),
        return_exceptions=True,
    )

    assert (await desk.balances())["service/55/payout/GHS available"] == Decimal(15)
    assert len(await desk.callbacks()) == 1
