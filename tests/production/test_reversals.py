"""A network takes back what succeeded: its money, its status, a callback, and what waits (D45)."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.payments.queries import LiveQueries
from sandbox_sim.payments.refunds import RefundRefused
from sandbox_sim.ports.network import Notification, StatusResult, SubmitResult
from sandbox_sim.production.attempt_views import LiveRecordReader
from sandbox_sim.records.attempts import Terms
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.ledger import LedgerQuery, Reason, make_transfer, wallet_of
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.vocabulary import Wallet
from tests.production.desk import FAILED, LIVE, SUCCEEDED, Desk
from tests.sample_records import SERVICE
from tests.units import unit_of

REVERSED = StatusResult(Outcome.REVERSED, reason="chargeback")

WALLET = "service/55/collection/GHS"
COLLECTED = f"{WALLET} available"
PAYOUT = "service/55/payout/GHS available"
CLEARING = "network/first/clearing/GHS"
SUSPENSE = "suspense/GHS"

pytestmark = pytest.mark.decision("D45")


async def paid(operation: Operation = Operation.COLLECT, **fields: Any) -> Desk:
    """A desk with one payment that succeeded at once, T1 of 10.50."""
    desk = Desk(**fields)
    if operation is Operation.PAYOUT:
        await desk.fund("15")
    desk.first.results.append(SubmitResult(Outcome.SUCCEEDED))
    await desk.pay(operation=operation)
    return desk


async def told(
    desk: Desk, outcome: Outcome = Outcome.REVERSED, *, signature: str = "valid"
) -> None:
    """A notification, which is read, and what the gateway asks because of it."""
    desk.first.notification = Notification(outcome, attempt_id=(await desk.attempts())[0].id)
    headers, at = {"x-signature": signature}, desk.clock.now()
    await desk.notifications.receive(RawNotification("first", "POST", "", "", headers, b"{}", at))
    await desk.run_due()
    await desk.run_due()


async def taken_back(desk: Desk) -> None:
    """A reversal that the status query confirms."""
    desk.first.statuses.append(REVERSED)
    await told(desk)


async def callbacks(desk: Desk) -> list[str]:
    """The statuses that callbacks report, oldest first."""
    found = reversed(await desk.callbacks())
    return [json.loads(each.body)["trans_status"] for each in found]


async def waiting(desk: Desk) -> list[str]:
    found = await LiveRecordReader(desk.store, desk.clock, desk.networks).waiting()
    return [reason for each in found for reason in each["waiting"]]


@pytest.fixture
async def desk() -> Desk:
    return await paid()


async def test_a_collection_that_is_taken_back_is_001_with_its_reason_and_a_callback(
    desk: Desk,
) -> None:
    await taken_back(desk)

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


async def test_its_success_stays_in_the_timeline(desk: Desk) -> None:
    await desk.wait(hours=1)

    await taken_back(desk)

    found = await desk.transaction()
    assert found is not None
    assert [each.status for each in found.timeline] == ["002", "000", "001"]
    assert found.decided_at is not None
    assert found.timeline[2].at == desk.clock.now() > found.decided_at


@pytest.mark.parametrize("operation", [Operation.PAYOUT, Operation.BILL, Operation.DEPOSIT])
async def test_every_payment_moves_its_money_back(operation: Operation) -> None:
    desk = Desk()
    await desk.fund("15")
    before = await desk.balances()
    desk.first.results.append(SubmitResult(Outcome.SUCCEEDED))
    await desk.pay(operation=operation)
    assert await desk.balances() != before

    await taken_back(desk)

    assert await desk.balances() == before
    assert await callbacks(desk) == ["000/SUCCESS", "001/FAILED"]


async def test_a_doubled_reversal_reverses_once(desk: Desk) -> None:
    await taken_back(desk)
    await desk.wait(minutes=2)
    await taken_back(desk)

    assert await desk.balances() == {}
    assert await callbacks(desk) == ["000/SUCCESS", "001/FAILED"]


@pytest.mark.parametrize("signature", ["valid", "forged"])
async def test_a_notification_of_a_reversal_only_makes_us_ask(desk: Desk, signature: str) -> None:
    asked = len(desk.first.queries)
    desk.first.statuses.append(SUCCEEDED)

    await told(desk, signature=signature)

    assert len(desk.first.queries) == asked + 1
    assert await desk.status() is Status.SUCCESSFUL
    assert await waiting(desk) == []


async def test_where_the_network_cannot_be_asked_a_signed_notification_counts() -> None:
    desk = await paid(has_status=False)

    await told(desk)

    assert await desk.status() is Status.FAILED
    assert await desk.balances() == {}


async def test_one_that_the_daily_question_finds_counts_too() -> None:
    desk = await paid(terms=Terms(recheck_for=timedelta(days=3)))
    desk.first.statuses.append(REVERSED)

    await desk.wait(days=1)

    assert await desk.status() is Status.FAILED


@pytest.mark.parametrize("operation", [Operation.COLLECT, Operation.PAYOUT])
async def test_a_reversal_before_the_success_is_a_failure_and_the_late_success_is_ignored(
    operation: Operation,
) -> None:
    desk = Desk()
    await desk.fund("15")
    before = await desk.balances()
    await desk.pay(operation=operation)

    await taken_back(desk)
    await told(desk, Outcome.SUCCEEDED)

    assert await desk.status() is Status.FAILED
    assert await desk.balances() == before
    assert await callbacks(desk) == ["001/FAILED"]
    assert await waiting(desk) == []


async def test_a_reversal_of_what_failed_changes_nothing() -> None:
    desk = Desk()
    desk.first.results.append(SubmitResult(Outcome.FAILED))
    await desk.pay(operation=Operation.COLLECT)

    await taken_back(desk)

    assert await callbacks(desk) == ["001/FAILED"]
    assert await waiting(desk) == []


async def test_a_success_that_the_network_still_claims_after_the_reversal_waits(desk: Desk) -> None:
    await taken_back(desk)
    await desk.wait(minutes=2)
    desk.first.statuses.append(SUCCEEDED)

    await told(desk)

    assert await desk.status() is Status.FAILED
    assert await waiting(desk) == ["contradiction: status says succeeded after reversed"]
    assert await desk.balances() == {SUSPENSE: Decimal("10.50"), CLEARING: Decimal("-10.50")}


async def test_the_money_goes_back_though_the_transaction_was_deleted(desk: Desk) -> None:
    transaction = await desk.transaction()
    assert transaction is not None
    (attempt,) = await desk.attempts()
    await unit_of(desk.store).delete_transaction(transaction)

    await desk.store.run(lambda unit: desk.asking.record(unit, attempt, REVERSED))

    assert await desk.balances() == {}
    assert await callbacks(desk) == ["000/SUCCESS"]


async def test_one_of_a_part_is_a_mismatch(desk: Desk) -> None:
    desk.first.statuses.append(replace(REVERSED, echo=Echo(amount=Decimal(4))))

    await told(desk)

    assert await desk.status() is Status.SUCCESSFUL
    assert await waiting(desk) == ["mismatch: amount is 4 and not 10.50"]


class TestAWalletThatDoesNotCoverIt:
    @pytest.fixture
    async def short(self) -> Desk:
        """A collection of 10.50 of which 4 were spent since."""
        desk = await paid()
        account, now = wallet_of(LIVE, SERVICE, Wallet.COLLECTION), desk.clock.now()
        spent = make_transfer(Reason.SPENT, account, Decimal(4), "", now, network="first")
        await unit_of(desk.store).add_transfer(spent)
        return desk

    async def test_it_stays_as_it_is_and_the_reversal_waits_for_a_person_in_suspense(
        self, short: Desk
    ) -> None:
        await taken_back(short)

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

    async def test_a_doubled_reversal_moves_nothing_more(self, short: Desk) -> None:
        await taken_back(short)
        before = await short.balances()
        await short.wait(minutes=2)

        await taken_back(short)

        assert await short.balances() == before


class TestWithRefunds:
    async def test_a_collection_that_was_taken_back_is_not_refunded(self, desk: Desk) -> None:
        await taken_back(desk)

        with pytest.raises(RefundRefused, match="this one is 001 failed"):
            await desk.refund()

    async def test_a_refund_that_is_taken_back_is_money_to_refund_again(self, desk: Desk) -> None:
        desk.first.results.append(SubmitResult(Outcome.SUCCEEDED))
        made = (await desk.refund()).transaction
        (attempt,) = await unit_of(desk.store).attempts_of(made.network_transaction_id)

        await desk.store.run(lambda unit: desk.asking.record(unit, attempt, REVERSED))

        assert await desk.status(made.transaction_id) is Status.FAILED
        assert await desk.balances() == {
            COLLECTED: Decimal("10.50"),
            CLEARING: Decimal("-10.50"),
        }
        assert await callbacks(desk) == ["000/SUCCESS"]
        assert (await desk.refund()).transaction.payment.amount == Decimal("10.50")


async def test_money_that_came_late_goes_out_of_suspense_again() -> None:
    desk = Desk()
    desk.first.results.append(SubmitResult(Outcome.FAILED))
    await desk.pay(operation=Operation.COLLECT)
    (attempt,) = await desk.attempts()
    await desk.store.run(lambda unit: desk.asking.record(unit, attempt, SUCCEEDED))
    assert (await desk.balances())[SUSPENSE] == Decimal("10.50")
    await desk.wait(minutes=2)

    await taken_back(desk)

    assert await desk.balances() == {}
    assert await waiting(desk) == ["contradiction: status says reversed after failed: chargeback"]


async def test_a_failure_that_the_network_claimed_before_is_not_reversed_twice(desk: Desk) -> None:
    (attempt,) = await desk.attempts()
    await desk.store.run(lambda unit: desk.asking.record(unit, attempt, FAILED))
    before = await desk.balances()
    await desk.wait(minutes=2)

    await taken_back(desk)

    assert await desk.balances() == before
    assert await waiting(desk) == [
        "contradiction: status says reversed after succeeded: chargeback"
    ]
