"""Refunds in mode P: a payout that names the collection, out of the wallet of collections (D45)."""

from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.payments.refunds import RefundRefused
from sandbox_sim.ports.network import SubmitResult
from sandbox_sim.production.routing import NetworkRoute
from sandbox_sim.records.attempts import Terms
from sandbox_sim.records.ledger import Reason, make_transfer, wallet_of
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.vocabulary import Wallet
from tests.production.desk import (
    CLEARING,
    COLLECTED,
    FAILED,
    LIVE,
    LOST,
    NOT_SENT,
    PAID,
    REFUSED,
    SUCCEEDED,
    Desk,
    collected,
)
from tests.sample_records import SERVICE
from tests.units import unit_of

COLLECTION_HELD = "service/55/collection/GHS pending"

pytestmark = pytest.mark.decision("D45")


@pytest.fixture
async def desk() -> Desk:
    return await collected()


async def test_a_refund_is_held_sent_and_posted_if_confirmed_without_a_callback(desk: Desk) -> None:
    before = await desk.callbacks()
    made = await desk.refund()

    assert await desk.balances() == {COLLECTION_HELD: Decimal("10.50"), CLEARING: Decimal("-10.50")}
    sent = desk.first.submits[-1]
    assert (sent.operation, sent.amount) == (Operation.PAYOUT, Decimal("10.50"))
    assert sent.party == "0244000001"
    assert sent.description == "Refund of T1"

    await desk.query(SUCCEEDED, seconds=15)

    assert await desk.status(made.transaction.transaction_id) is Status.SUCCESSFUL
    assert await desk.balances() == {}
    assert await desk.callbacks() == before


async def test_a_refund_keeps_the_person_the_reason_and_the_collection(desk: Desk) -> None:
    collection = await desk.transaction()

    made = (await desk.refund()).transaction

    assert made.refund_of == collection.network_transaction_id
    assert (made.refunded_by, made.refund_reason) == ("ama", "sold out")
    assert (await desk.attempt(made)).refund_of == collection.network_transaction_id


async def test_a_failed_refund_returns_the_money_to_the_wallet_of_collections() -> None:
    desk = await collected(terms=Terms())
    made = await desk.refund()
    await desk.query(FAILED, seconds=15)

    assert await desk.status(made.transaction.transaction_id) is Status.FAILED
    assert await desk.balances() == {COLLECTED: Decimal("10.50"), CLEARING: Decimal("-10.50")}
    assert (await desk.refund()).transaction.payment.amount == Decimal("10.50")


@pytest.mark.parametrize(
    ("outcome", "why"), [(REFUSED, "no such number"), (NOT_SENT, "connection refused")]
)
async def test_a_refund_that_the_network_does_not_take_is_refused_and_moves_no_money(
    desk: Desk, outcome: SubmitResult, why: str
) -> None:
    desk.first.results.append(outcome)

    with pytest.raises(RefundRefused, match=f"{why}.*Nothing was paid.*ledger adjust"):
        await desk.refund()

    assert await desk.balances() == {COLLECTED: Decimal("10.50"), CLEARING: Decimal("-10.50")}


async def test_a_refund_whose_answer_is_lost_stays_open_with_its_money_held(desk: Desk) -> None:
    desk.first.results.append(LOST)

    made = await desk.refund()

    assert made.transaction.status is Status.PENDING
    assert (await desk.balances())[COLLECTION_HELD] == Decimal("10.50")
    with pytest.raises(RefundRefused, match=r"all of the 10.50 GHS that was collected is refunded"):
        await desk.refund()


async def test_refunds_cannot_exceed_the_collection(desk: Desk) -> None:
    await desk.fund("100", wallet=Wallet.COLLECTION)
    await desk.refund(amount="4")

    with pytest.raises(RefundRefused, match=r"amount 6.51 is more .*: 6.50 of 10.50 GHS"):
        await desk.refund(amount="6.51")
    await desk.refund(amount="6")
    assert (await desk.refund()).transaction.payment.amount == Decimal("0.50")

    with pytest.raises(RefundRefused, match="all of the"):
        await desk.refund(amount="0.01")


async def test_a_failed_refund_that_was_paid_after_all_counts() -> None:
    desk = await collected(terms=Terms())
    made = await desk.refund()
    await desk.query(FAILED, seconds=15)
    await desk.record(SUCCEEDED, made.transaction)

    with pytest.raises(RefundRefused, match="all of the"):
        await desk.refund()


async def test_a_refund_order_with_the_id_of_an_earlier_refund_is_refused(desk: Desk) -> None:
    await desk.refund(amount="1", transaction_id="R1")

    with pytest.raises(RefundRefused, match="it names an earlier refund"):
        await desk.refund(amount="1", transaction_id="R1")

    assert len(desk.first.submits) == 2


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"operation": Operation.CARD}, "a card payment.*ledger adjust"),
        ({"operation": Operation.DEPOSIT}, "the operation deposit: make a payout"),
    ],
)
async def test_only_a_collection_is_refunded(fields: dict[str, Any], why: str) -> None:
    desk = Desk()
    await desk.pay(PAID, **fields)

    with pytest.raises(RefundRefused, match=why):
        await desk.refund()


async def test_a_pending_collection_is_not_refunded() -> None:
    desk = Desk()
    await desk.pay(operation=Operation.COLLECT)

    with pytest.raises(RefundRefused, match="this one is 002 pending"):
        await desk.refund()


async def test_a_contradicted_collection_is_refunded_only_after_a_decision(desk: Desk) -> None:
    await desk.record(FAILED)

    with pytest.raises(
        RefundRefused, match=r"in doubt: status says failed after succeeded: no funds.*settle"
    ):
        await desk.refund()
    assert len(desk.first.submits) == 1

    settled = (await desk.attempt())._replace(settled_by="ama", settled_reason="paid")
    await unit_of(desk.store).save_attempt(settled)
    await desk.refund()
    assert len(desk.first.submits) == 2


async def test_a_refund_over_a_network_without_payouts_is_refused_with_advice() -> None:
    desk = await collected(operations=frozenset({Operation.COLLECT}))

    with pytest.raises(RefundRefused, match=r"does not take the operation payout.*ordinary payout"):
        await desk.refund()

    assert len(desk.first.submits) == 1


async def test_a_refund_goes_over_the_network_that_collected_not_by_the_routes(desk: Desk) -> None:
    desk.networks.routes = [NetworkRoute("second")]

    await desk.refund()

    assert (len(desk.first.submits), len(desk.second.submits)) == (2, 0)


async def test_a_refund_goes_over_the_backup_network_if_that_one_collected() -> None:
    desk = Desk()
    desk.networks.routes = [NetworkRoute("first"), NetworkRoute("second")]
    desk.first.results.append(NOT_SENT)
    desk.second.results.append(PAID)
    await desk.pay(operation=Operation.COLLECT)

    await desk.refund()

    assert (len(desk.first.submits), len(desk.second.submits)) == (1, 2)


async def test_a_refund_over_a_network_that_was_removed_is_refused(desk: Desk) -> None:
    desk.networks.by_name = {"second": desk.networks.by_name["second"]}

    with pytest.raises(RefundRefused, match="Nothing was paid"):
        await desk.refund()


async def test_a_refund_of_more_than_the_wallet_has_is_refused(desk: Desk) -> None:
    account, now = wallet_of(LIVE, SERVICE, Wallet.COLLECTION), desk.clock.now()
    spent = make_transfer(Reason.SPENT, account, Decimal("0.01"), "", now, network="first")
    await unit_of(desk.store).add_transfer(spent)

    with pytest.raises(RefundRefused, match=r"less than 10.50 is available in the collection"):
        await desk.refund()


async def test_a_refused_refund_that_its_network_paid_is_not_made_again(desk: Desk) -> None:
    """Its transaction was deleted, so only its attempt shows what was paid."""
    desk.first.results.append(REFUSED)
    with pytest.raises(RefundRefused, match="no such number"):
        await desk.refund()
    *_, refused = await desk.attempts()
    await desk.notify(Outcome.SUCCEEDED, attempt_id=refused.id)

    with pytest.raises(RefundRefused, match="in doubt: notification says succeeded after refused"):
        await desk.refund()

    assert len(desk.first.submits) == 2
