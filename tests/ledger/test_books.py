"""Manual entries in the ledger of mode P: top up, resolve, adjust, reverse (D44)."""

from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from sandbox_sim.ledger.books import Adjustment, BadEntry, Books
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import StatusResult
from sandbox_sim.production.manual_actions import Decision
from sandbox_sim.records.ledger import (
    AccountKind,
    BadTransfer,
    LedgerLine,
    LedgerQuery,
    ManualEntry,
    Reason,
)
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.vocabulary import Wallet
from tests.production.desk import LIVE, LOST, SIGNED, Desk
from tests.sample_records import SERVICE
from tests.units import unit_of

SERVICE_WALLET, CLEARING, FEES, SUSPENSE = (
    *(AccountKind.WALLET, AccountKind.CLEARING, AccountKind.FEES, AccountKind.SUSPENSE),
)

AMOUNT = Decimal("10.50")

PAYOUT, COLLECTION = "service/55/payout/GHS available", "service/55/collection/GHS available"

OF_FIRST = "network/first/clearing/GHS"

pytestmark = pytest.mark.decision("D44")


async def late_success(
    desk: Desk, operation: Operation = Operation.COLLECT, amount: Decimal | None = None
) -> str:
    """Make a payment that a person settles as failed and that succeeds later; returns its id."""
    if operation is Operation.PAYOUT:
        await desk.fund("15")
    desk.first.results.append(LOST)
    await desk.pay(operation=operation)
    (attempt,) = await desk.attempts()
    decision = Decision(Status.FAILED, "ama", "nothing came", force=True)
    await desk.actions.settle(attempt.network_transaction_id, decision)
    desk.first.statuses.append(StatusResult(Outcome.SUCCEEDED, echo=Echo(amount=amount)))
    await desk.wait(minutes=1)
    return attempt.network_transaction_id


def adjustment(amount: str = "4", **fields: Any) -> Adjustment:
    plain: dict[str, Any] = {"wallet": Wallet.COLLECTION, "ours": FEES, "adds": True}
    return Adjustment(SERVICE, amount=Decimal(amount), **{**plain, **fields})


async def lines(desk: Desk, **query: Any) -> list[LedgerLine]:
    found = await unit_of(desk.store).ledger_page(LedgerQuery(mode=LIVE, **query))
    return list(found)


def refused(says: str, field: str = "") -> Any:
    """Expects a `BadEntry` with this text that names this field of the order."""
    return pytest.raises(BadEntry, match=says, check=lambda error: error.field == field)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
async def subject(desk: Desk) -> str:
    """The collection T1 of 10.50, which is in suspense: it succeeded late."""
    return await late_success(desk)


async def test_units_are_topped_up_with_a_name_and_a_reason_and_money_is_not(desk: Desk) -> None:
    assert await desk.books.topup(SERVICE, Wallet.SMS, 20, SIGNED) == 20
    assert await desk.books.topup(SERVICE, Wallet.SMS, 5, SIGNED) == 25
    with pytest.raises(BadTransfer):
        await desk.books.topup(SERVICE, Wallet.PAYOUT, 5, SIGNED)

    for line in await lines(desk):
        assert (line.transfer.reason, line.manual) == (Reason.TOPUP, SIGNED)


class TestResolve:
    @pytest.mark.parametrize(
        ("to", "left"),
        [
            (SERVICE_WALLET, {OF_FIRST: -AMOUNT, COLLECTION: AMOUNT}),
            (CLEARING, {}),
            (FEES, {OF_FIRST: -AMOUNT, "fees/GHS": AMOUNT}),
        ],
    )
    async def test_a_late_collection_is_resolved_to_the_wallet_the_network_or_the_fees(
        self, desk: Desk, subject: str, to: AccountKind, left: dict[str, Decimal]
    ) -> None:
        assert await desk.balances() == {OF_FIRST: -AMOUNT, "suspense/GHS": AMOUNT}

        line = await desk.books.resolve(subject, to, None, SIGNED)

        assert (line.transfer.subject, line.manual) == (subject, SIGNED)
        assert await desk.balances() == left

    @pytest.mark.parametrize(
        ("to", "left"),
        [
            (SERVICE_WALLET, {PAYOUT: Decimal("4.50"), OF_FIRST: Decimal("-4.50")}),
            (CLEARING, {PAYOUT: 15, OF_FIRST: -15}),
        ],
    )
    async def test_a_late_payout_is_resolved_from_the_wallet_or_the_network(
        self, desk: Desk, to: AccountKind, left: dict[str, Decimal]
    ) -> None:
        subject = await late_success(desk, Operation.PAYOUT)
        assert (await desk.balances())["suspense/GHS"] == -AMOUNT

        await desk.books.resolve(subject, to, None, SIGNED)

        assert await desk.balances() == left

    @pytest.mark.parametrize(
        ("operation", "sign"), [(Operation.COLLECT, 1), (Operation.PAYOUT, -1)]
    )
    async def test_a_late_success_of_another_amount_is_in_suspense_with_that_amount(
        self, desk: Desk, operation: Operation, sign: int
    ) -> None:
        subject = await late_success(desk, operation, Decimal(8))

        (item,) = await desk.books.suspense()
        assert (item.transaction_id, item.amount) == ("T1", sign * Decimal(8))
        (attempt,) = await desk.attempts()
        assert attempt.is_doubted
        await desk.books.resolve(subject, SERVICE_WALLET, None, SIGNED)

        assert await desk.books.suspense() == []
        (attempt,) = await desk.attempts()
        assert not attempt.is_doubted

    async def test_a_network_reversal_takes_the_amount_out_of_suspense(self, desk: Desk) -> None:
        subject = await late_success(desk, amount=Decimal(8))

        desk.first.statuses.append(StatusResult(Outcome.REVERSED))
        await desk.asking.ask_by_hand(subject, SERVICE)

        assert await desk.balances() == {}

    async def test_a_resolution_above_the_balance_of_a_service_is_refused(self, desk: Desk) -> None:
        subject = await late_success(desk, Operation.PAYOUT)
        await desk.pay(operation=Operation.PAYOUT, transaction_id="T2")

        with refused(r"has 4\.50, less than 10\.50: nothing was entered", "amount"):
            await desk.books.resolve(subject, SERVICE_WALLET, None, SIGNED)
        await desk.books.resolve(subject, FEES, None, SIGNED)

        assert (await desk.balances())["fees/GHS"] == -AMOUNT

    async def test_an_item_in_suspense_is_resolved_in_parts_up_to_its_amount(
        self, desk: Desk, subject: str
    ) -> None:
        """The payment then no longer waits for a person."""
        await desk.books.resolve(subject, FEES, Decimal("0.50"), SIGNED)

        with refused(r"10 is in suspense .* less than 10\.01", "amount"):
            await desk.books.resolve(subject, FEES, Decimal("10.01"), SIGNED)
        (item,) = await desk.books.suspense()
        assert (item.transaction_id, item.network, item.amount) == ("T1", "first", Decimal(10))
        assert (await desk.attempts())[0].is_doubted
        await desk.books.resolve(subject, SERVICE_WALLET, None, SIGNED)

        with refused("nothing is in suspense for payment T1", "transaction"):
            await desk.books.resolve(subject, SERVICE_WALLET, None, SIGNED)
        with refused("there is no payment 'T9' of mode P", "transaction"):
            await desk.books.resolve("T9", FEES, None, SIGNED)
        assert await desk.books.suspense() == []
        (attempt,) = await desk.attempts()
        assert not attempt.is_doubted
        assert (attempt.settled_by, attempt.settled_reason) == ("ama", "by letter")


class TestAdjust:
    async def test_an_adjustment_moves_money_to_or_from_a_wallet(self, desk: Desk) -> None:
        await desk.books.adjust(adjustment("4"), SIGNED)
        await desk.books.adjust(adjustment("1", adds=False, ours=CLEARING, network="first"), SIGNED)

        assert await desk.balances() == {COLLECTION: 3, "fees/GHS": -4, OF_FIRST: 1}

    async def test_an_invalid_adjustment_is_refused_with_its_wrong_field(
        self, desk: Desk, subject: str
    ) -> None:
        networks = ": set network to one of first, second"
        other = Adjustment(56, Wallet.COLLECTION, FEES, Decimal(1), adds=True, subject=subject)
        misspelt = adjustment(ours=CLEARING, network="frist")
        for order, says, field in (
            (adjustment(adds=False), "has 0, less than 4", "amount"),
            (adjustment(ours=CLEARING), f"clearing needs a network{networks}", "network"),
            (misspelt, f"there is no network 'frist'{networks}", "network"),
            (adjustment(ours=SUSPENSE), "give the transaction", "transaction"),
            (other, "belongs to service 55, not to service 56", "transaction"),
        ):
            with refused(says, field):
                await desk.books.adjust(order, SIGNED)
        with refused("set network to one of none", "network"):
            await Books(Desk().store, desk.clock, []).adjust(adjustment(ours=CLEARING), SIGNED)
        for signed in (ManualEntry(" ", "why"), ManualEntry("ama", " ")):
            with refused("by must name the person who makes the entry"):
                await desk.books.adjust(adjustment(), signed)

    async def test_an_adjustment_takes_at_most_the_amount_in_suspense(
        self, desk: Desk, subject: str
    ) -> None:
        await desk.books.adjust(adjustment("4", ours=SUSPENSE, subject=subject), SIGNED)

        with refused(r"6\.5 is in suspense .* by -6\.51", "amount"):
            await desk.books.adjust(adjustment("6.51", ours=SUSPENSE, subject=subject), SIGNED)
        await desk.books.adjust(adjustment("6.50", ours=SUSPENSE, subject=subject), SIGNED)
        assert await desk.books.suspense() == []

    async def test_an_adjustment_begins_an_item_in_suspense_that_can_grow(
        self, desk: Desk, subject: str
    ) -> None:
        await desk.books.resolve(subject, SERVICE_WALLET, None, SIGNED)

        for amount, adds, left in (("0.5", False, ["0.5"]), ("0.5", False, ["1"]), ("1", True, [])):
            entry = adjustment(amount, ours=SUSPENSE, subject=subject, adds=adds)
            await desk.books.adjust(entry, SIGNED)
            items = await desk.books.suspense()
            assert [each.amount for each in items] == [*map(Decimal, left)]
        await desk.books.adjust(adjustment("4", ours=SUSPENSE, subject=subject), SIGNED)
        assert [each.amount for each in await desk.books.suspense()] == [-4]


class TestReverse:
    async def test_a_reversal_adds_the_opposite_entry_once(self, desk: Desk) -> None:
        entry = await desk.books.adjust(adjustment(), SIGNED)

        reversal = await desk.books.reverse(entry.number, ManualEntry("kofi", "a slip"))

        assert await desk.balances() == {}
        newest, oldest = await lines(desk)
        assert (newest, oldest) == (reversal, entry)
        assert newest.manual == ManualEntry("kofi", "a slip", reverses=entry.number)
        await desk.fund("15")
        (automatic, *_) = await lines(desk)
        for number, says in (
            (entry.number, f"already reversed by entry {reversal.number}"),
            (reversal.number, "is a reversal itself"),
            (automatic.number, "was not made by a person"),
            (99, "there is no entry 99"),
        ):
            with refused(says):
                await desk.books.reverse(number, SIGNED)

    async def test_a_reversal_restores_the_amount_in_suspense_and_removes_units(
        self, desk: Desk, subject: str
    ) -> None:
        resolved = partial(desk.books.resolve, subject, FEES, None, SIGNED)
        corrections = [
            partial(desk.books.adjust, adjustment(each, ours=SUSPENSE, subject=subject), SIGNED)
            for each in ("4", "10.50")
        ]
        for enter in (resolved, *corrections):
            entry = await enter()

            await desk.books.reverse(entry.number, SIGNED)

            (item,) = await desk.books.suspense()
            assert item.amount == AMOUNT
        has = await desk.balances()
        await desk.books.topup(SERVICE, Wallet.SMS, 5, SIGNED)
        (entry, *_) = await lines(desk)
        await desk.books.reverse(entry.number, SIGNED)
        assert await desk.balances() == has

    async def test_a_reversal_of_a_resolved_amount_in_suspense_is_refused(
        self, desk: Desk, subject: str
    ) -> None:
        await desk.books.resolve(subject, SERVICE_WALLET, None, SIGNED)
        put_in = adjustment("3", ours=SUSPENSE, subject=subject, adds=False)
        entry = await desk.books.adjust(put_in, SIGNED)
        await desk.books.resolve(subject, FEES, None, SIGNED)

        with refused("0 is in suspense", "amount"):
            await desk.books.reverse(entry.number, SIGNED)
