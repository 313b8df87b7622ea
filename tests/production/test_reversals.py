"""Reversals: a network takes back a payment that succeeded (D45)."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.payments.queries import LiveQueries
from sandbox_sim.payments.refunds import RefundRefused
from sandbox_sim.ports.network import StatusResult, SubmitResult
from sandbox_sim.records.attempts import Terms
from sandbox_sim.records.ledger import LedgerQuery, Reason, make_transfer, wallet_of
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.vocabulary import Wallet
from tests.production.desk import (
    CLEARING,
    COLLECTED,
    FAILED,
    LIVE,
    PAID,
    SUCCEEDED,
    Desk,
    collected,
)
from tests.sample_records import SERVICE
from tests.units import unit_of

REVERSED = StatusResult(Outcome.REVERSED, reason="chargeback")
WALLET = "service/55/collection/GHS"
SUSPENSE = "suspense/GHS"

pytestmark = pytest.mark.decision("D45")


async def notified(
    desk: Desk, outcome: Outcome = Outcome.REVERSED, *, signature: str = "valid"
) -> None:
    """Receive a notification, and run the status query that it causes."""
    await desk.notify(outcome, headers={"x-signature": signature})
    await desk.run_due()


async def reverse(desk: Desk) -> None:
    """A reversal that the status query confirms."""
    desk.first.statuses.append(REVERSED)
    await notified(desk)


async def callbacks(desk: Desk) -> list[str]:
    """The statuses that callbacks report, oldest first."""
    found = reversed(await desk.callbacks())
    return [json.loads(each.body)["trans_status"] for each in found]


async def waiting(desk: Desk) -> list[str]:
    found = await desk.records.waiting()
    return [reason for each in found for reason in each["waiting"]]


@pytest.fixture
async def desk() -> Desk:
    return await collected()


async def test_a_reversed_collection_is_001_with_its_reason_and_a_callback(desk: Desk) -> None:
    await reverse(desk)

    assert await desk.status() is Status.FAILED
    assert await desk.balances() == {}
    assert await callbacks(desk) == ["000/SUCCESS", "001/FAILED"]
    asked = await LiveQueries(desk.store).transaction_status(SERVICE, "T1")
    assert asked.fields is not None
    assert asked.fields["response_data"]["status_desc"] == (  # type: ignore[index]
        "Transaction Failed: reversed by the network: chargeback"
    )
    assert await waiting(desk) == []
    page = await unit_of(desk.store).ledger_page(LedgerQuery(SERVICE))
    assert [line.transfer.reason for line in page] == [Reason.REVERSED, Reason.COLLECTED]


async def test_the_success_of_a_reversed_payment_stays_in_the_timeline(desk: Desk) -> None:
    await desk.wait(hours=1)

    await reverse(desk)

    found = await desk.transaction()
    assert [each.status for each in found.timeline] == ["002", "000", "001"]
    assert found.decided_at is not None
    assert found.timeline[2].at == desk.clock.now() > found.decided_at


@pytest.mark.parametrize("operation", [Operation.PAYOUT, Operation.BILL, Operation.DEPOSIT])
async def test_a_reversal_of_each_operation_moves_the_money_back(operation: Operation) -> None:
    desk = Desk()
    await desk.fund("15")
    before = await desk.balances()
    await desk.pay(PAID, operation=operation)
    assert await desk.balances() != before

    await reverse(desk)

    assert await desk.balances() == before
    assert await callbacks(desk) == ["000/SUCCESS", "001/FAILED"]


async def test_a_repeated_reversal_counts_once(desk: Desk) -> None:
    await reverse(desk)
    await desk.wait(minutes=2)
    await reverse(desk)

    assert await desk.balances() == {}
    assert await callbacks(desk) == ["000/SUCCESS", "001/FAILED"]


@pytest.mark.parametrize("signature", ["valid", "forged"])
async def test_a_notification_of_a_reversal_causes_only_a_query(desk: Desk, signature: str) -> None:
    asked = len(desk.first.queries)
    desk.first.statuses.append(SUCCEEDED)

    await notified(desk, signature=signature)

    assert len(desk.first.queries) == asked + 1
    assert await desk.status() is Status.SUCCESSFUL
    assert await waiting(desk) == []


async def test_a_signed_reversal_of_a_network_without_status_query_counts() -> None:
    desk = await collected(has_status=False)

    await notified(desk)

    assert await desk.status() is Status.FAILED
    assert await desk.balances() == {}


async def test_a_reversal_that_the_daily_recheck_finds_counts() -> None:
    desk = await collected(terms=Terms(recheck_for=timedelta(days=3)))
    await desk.query(REVERSED, days=1)

    assert await desk.status() is Status.FAILED


@pytest.mark.parametrize("operation", [Operation.COLLECT, Operation.PAYOUT])
async def test_a_reversal_before_the_success_is_a_failure_and_the_late_success_is_ignored(
    operation: Operation,
) -> None:
    desk = Desk()
    await desk.fund("15")
    before = await desk.balances()
    await desk.pay(operation=operation)

    await reverse(desk)
    await notified(desk, Outcome.SUCCEEDED)

    assert await desk.status() is Status.FAILED
    assert await desk.balances() == before
    assert await callbacks(desk) == ["001/FAILED"]
    assert await waiting(desk) == []


async def test_a_reversal_of_a_failed_payment_changes_nothing() -> None:
    desk = Desk()
    await desk.pay(SubmitResult(Outcome.FAILED), operation=Operation.COLLECT)

    await reverse(desk)

    assert await callbacks(desk) == ["001/FAILED"]
    assert await waiting(desk) == []


async def test_a_success_that_is_reported_after_a_reversal_waits_for_a_person(desk: Desk) -> None:
    await reverse(desk)
    await desk.wait(minutes=2)
    desk.first.statuses.append(SUCCEEDED)

    await notified(desk)

    assert await desk.status() is Status.FAILED
    assert await waiting(desk) == ["contradiction: status says succeeded after reversed"]
    assert await desk.balances() == {SUSPENSE: Decimal("10.50"), CLEARING: Decimal("-10.50")}


async def test_a_reversal_moves_the_money_back_if_the_transaction_was_deleted(desk: Desk) -> None:
    await unit_of(desk.store).delete_transaction(await desk.transaction())

    await desk.record(REVERSED)

    assert await desk.balances() == {}
    assert await callbacks(desk) == ["000/SUCCESS"]


async def test_a_reversal_of_a_part_is_a_mismatch(desk: Desk) -> None:
    desk.first.statuses.append(replace(REVERSED, echo=Echo(amount=Decimal(4))))

    await notified(desk)

    assert await desk.status() is Status.SUCCESSFUL
    assert await waiting(desk) == ["mismatch: amount is 4 and not 10.50"]


class TestWalletThatDoesNotCoverTheReversal:
    @pytest.fixture
    async def short(self) -> Desk:
        """A collection of 10.50 of which 4 were spent since."""
        desk = await collected()
        account, now = wallet_of(LIVE, SERVICE, Wallet.COLLECTION), desk.clock.now()
        spent = make_transfer(Reason.SPENT, account, Decimal(4), "", now, network="first")
        await unit_of(desk.store).add_transfer(spent)
        return desk

    async def test_the_wallet_stays_unchanged_and_the_reversal_waits_in_suspense(
        self, short: Desk
    ) -> None:
        await reverse(short)

        assert await short.status() is Status.FAILED
        assert await short.balances() == {
            COLLECTED: Decimal("6.50"),
            SUSPENSE: Decimal("-10.50"),
            CLEARING: Decimal(4),
        }
        (attempt,) = await short.attempts()
        query = LedgerQuery(subject=attempt.network_transaction_id, mode=LIVE)
        newest, *_ = await unit_of(short.store).ledger_page(query)
        assert newest.transfer.reason is Reason.SUSPENDED
        assert await waiting(short) == [
            f"reversal: {WALLET} has 6.50, less than 10.50, so the reversal is in suspense"
        ]

    async def test_a_repeated_reversal_moves_no_further_money(self, short: Desk) -> None:
        await reverse(short)
        before = await short.balances()
        await short.wait(minutes=2)

        await reverse(short)

        assert await short.balances() == before


class TestReversalWithRefunds:
    async def test_a_reversed_collection_is_not_refunded(self, desk: Desk) -> None:
        await reverse(desk)

        with pytest.raises(RefundRefused, match="this one is 001 failed"):
            await desk.refund()

    async def test_a_reversed_refund_may_be_made_again(self, desk: Desk) -> None:
        desk.first.results.append(PAID)
        made = (await desk.refund()).transaction

        await desk.record(REVERSED, made)

        assert await desk.status(made.transaction_id) is Status.FAILED
        assert await desk.balances() == {COLLECTED: Decimal("10.50"), CLEARING: Decimal("-10.50")}
        assert await callbacks(desk) == ["000/SUCCESS"]
        assert (await desk.refund()).transaction.payment.amount == Decimal("10.50")


async def test_a_reversal_takes_late_money_out_of_suspense_again() -> None:
    desk = Desk()
    await desk.pay(SubmitResult(Outcome.FAILED), operation=Operation.COLLECT)
    await desk.record(SUCCEEDED)
    assert (await desk.balances())[SUSPENSE] == Decimal("10.50")
    await desk.wait(minutes=2)

    await reverse(desk)

    assert await desk.balances() == {}
    assert await waiting(desk) == ["contradiction: status says reversed after failed: chargeback"]


async def test_a_reversal_after_a_contradicting_failure_moves_no_further_money(desk: Desk) -> None:
    await desk.record(FAILED)
    before = await desk.balances()
    await desk.wait(minutes=2)

    await reverse(desk)

    assert await desk.balances() == before
    assert await waiting(desk) == [
        "contradiction: status says reversed after succeeded: chargeback"
    ]


async def test_a_failure_repeated_after_its_reversal_moves_no_further_money(desk: Desk) -> None:
    await desk.record(FAILED)
    await desk.record(REVERSED)
    before = await desk.balances()

    await desk.record(FAILED)
    await desk.record(REVERSED)

    assert await desk.balances() == before
    assert before[SUSPENSE] == Decimal("-10.50")


async def test_a_late_notification_of_reversed_money_moves_no_further_money() -> None:
    desk = Desk()
    await desk.pay(SubmitResult(Outcome.FAILED), operation=Operation.COLLECT)
    await desk.notify(Outcome.SUCCEEDED)
    await desk.record(REVERSED)
    assert await desk.balances() == {}

    await desk.notify(Outcome.SUCCEEDED)

    assert await desk.balances() == {}
    assert await waiting(desk) == ["contradiction: status says reversed after failed: chargeback"]
