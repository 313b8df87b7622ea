"""Refunds in mode P: a payout that names the collection, out of the wallet of collections (D45)."""

from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.payments.refunds import RefundRefused
from sandbox_sim.ports.network import StatusResult, SubmitResult
from sandbox_sim.production.routing import NetworkRoute
from sandbox_sim.records.attempts import Terms
from sandbox_sim.records.ledger import Reason, make_transfer, wallet_of
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.vocabulary import Wallet
from tests.production.desk import FAILED, LIVE, LOST, NOT_SENT, SUCCEEDED, Desk
from tests.sample_records import SERVICE
from tests.units import unit_of

COLLECTED = "service/55/collection/GHS available"
SET_ASIDE = "service/55/collection/GHS pending"
CLEARING = "network/first/clearing/GHS"

REFUSED = SubmitResult(Outcome.REFUSED, code="019", reason="the number is barred")

pytestmark = pytest.mark.decision("D45")


async def collected(**fields: Any) -> Desk:
    """A desk with one successful collection, T1, of 10.50."""
    desk = Desk(**fields)
    desk.first.results.append(SubmitResult(Outcome.SUCCEEDED))
    await desk.pay(operation=Operation.COLLECT)
    return desk


@pytest.fixture
async def desk() -> Desk:
    return await collected()


async def test_a_refund_is_set_aside_sent_and_posted_once_it_is_confirmed_without_a_callback(
    desk: Desk,
) -> None:
    before = await desk.callbacks()
    made = await desk.refund()

    assert await desk.balances() == {
        SET_ASIDE: Decimal("10.50"),
        CLEARING: Decimal("-10.50"),
    }
    sent = desk.first.submits[-1]
    assert (sent.operation, sent.amount, sent.party) == (
        Operation.PAYOUT,
        Decimal("10.50"),
        "0244000001",
    )
    assert sent.description == "Refund of T1"

    desk.first.statuses.append(SUCCEEDED)
    await desk.wait(seconds=15)

    assert await desk.status(made.transaction.transaction_id) is Status.SUCCESSFUL
    assert await desk.balances() == {}
    assert await desk.callbacks() == before


async def test_it_keeps_who_refunded_and_why_and_names_the_collection(desk: Desk) -> None:
    collection = await desk.transaction()
    assert collection is not None

    made = (await desk.refund()).transaction

    assert made.refund_of == collection.network_transaction_id
    assert (made.refunded_by, made.refund_reason) == ("ama", "sold out")
    found = await unit_of(desk.store).attempts_of(made.network_transaction_id)
    assert [each.refund_of for each in found] == [collection.network_transaction_id]


async def test_one_that_fails_gives_the_money_back_to_the_wallet_of_collections() -> None:
    desk = await collected(terms=Terms())
    made = await desk.refund()
    desk.first.statuses.append(FAILED)
    await desk.wait(seconds=15)

    assert await desk.status(made.transaction.transaction_id) is Status.FAILED
    assert await desk.balances() == {COLLECTED: Decimal("10.50"), CLEARING: Decimal("-10.50")}
    assert (await desk.refund()).transaction.payment.amount == Decimal("10.50")


@pytest.mark.parametrize(
    ("outcome", "why"),
    [(REFUSED, "the number is barred"), (NOT_SENT, "connection refused")],
)
async def test_one_that_the_network_does_not_take_is_refused_and_leaves_the_money(
    desk: Desk, outcome: SubmitResult, why: str
) -> None:
    desk.first.results.append(outcome)

    with pytest.raises(RefundRefused, match=f"{why}.*Nothing was paid.*ledger adjust"):
        await desk.refund()

    assert await desk.balances() == {COLLECTED: Decimal("10.50"), CLEARING: Decimal("-10.50")}


async def test_one_whose_answer_is_lost_stays_open_and_its_money_set_aside(desk: Desk) -> None:
    desk.first.results.append(LOST)

    made = await desk.refund()

    assert made.transaction.status is Status.PENDING
    assert (await desk.balances())[SET_ASIDE] == Decimal("10.50")
    with pytest.raises(RefundRefused, match=r"all of the 10.50 GHS that was collected is refunded"):
        await desk.refund()


async def test_refunds_sum_to_the_collection_at_most(desk: Desk) -> None:
    await desk.fund("100", wallet=Wallet.COLLECTION)
    await desk.refund(amount="4")

    with pytest.raises(RefundRefused, match=r"amount 6.51 is more .*: 6.50 of 10.50 GHS"):
        await desk.refund(amount="6.51")
    await desk.refund(amount="6")
    assert (await desk.refund()).transaction.payment.amount == Decimal("0.50")

    with pytest.raises(RefundRefused, match="all of the"):
        await desk.refund(amount="0.01")


async def test_one_that_failed_but_was_paid_all_the_same_counts() -> None:
    desk = await collected(terms=Terms())
    made = await desk.refund()
    desk.first.statuses.append(FAILED)
    await desk.wait(seconds=15)
    (attempt,) = await unit_of(desk.store).attempts_of(made.transaction.network_transaction_id)
    paid = StatusResult(Outcome.SUCCEEDED)
    await desk.store.run(lambda unit: desk.asking.record(unit, attempt, paid))

    with pytest.raises(RefundRefused, match="all of the"):
        await desk.refund()


async def test_a_repeated_order_with_an_id_of_its_own_is_refused(desk: Desk) -> None:
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
    desk.first.results.append(SubmitResult(Outcome.SUCCEEDED))
    await desk.pay(**fields)

    with pytest.raises(RefundRefused, match=why):
        await desk.refund()


async def test_one_that_has_not_succeeded_is_not_refunded() -> None:
    desk = Desk()
    await desk.pay(operation=Operation.COLLECT)

    with pytest.raises(RefundRefused, match="this one is 002 pending"):
        await desk.refund()


async def test_one_that_its_network_contradicts_is_refunded_only_after_a_person_decided(
    desk: Desk,
) -> None:
    collection = await desk.transaction()
    assert collection is not None
    (attempt,) = await unit_of(desk.store).attempts_of(collection.network_transaction_id)
    await desk.store.run(lambda unit: desk.asking.record(unit, attempt, FAILED))

    with pytest.raises(
        RefundRefused, match=r"in doubt: status says failed after succeeded: no funds.*settle"
    ):
        await desk.refund()
    assert len(desk.first.submits) == 1

    (doubted,) = await unit_of(desk.store).attempts_of(collection.network_transaction_id)
    await unit_of(desk.store).save_attempt(
        doubted._replace(settled_by="ama", settled_reason="paid")
    )
    await desk.refund()
    assert len(desk.first.submits) == 2


async def test_a_network_without_payouts_refuses_and_says_what_to_do() -> None:
    desk = await collected(operations=frozenset({Operation.COLLECT}))

    with pytest.raises(RefundRefused, match=r"does not take the operation payout.*ordinary payout"):
        await desk.refund()

    assert len(desk.first.submits) == 1


async def test_it_goes_over_the_network_that_collected_whatever_the_routes_say(desk: Desk) -> None:
    desk.networks.routes = [NetworkRoute("second")]

    await desk.refund()

    assert (len(desk.first.submits), len(desk.second.submits)) == (2, 0)


async def test_it_goes_over_the_backup_that_collected_and_not_over_the_one_that_did_not() -> None:
    desk = Desk()
    desk.networks.routes = [NetworkRoute("first"), NetworkRoute("second")]
    desk.first.results.append(NOT_SENT)
    desk.second.results.append(SubmitResult(Outcome.SUCCEEDED))
    await desk.pay(operation=Operation.COLLECT)

    await desk.refund()

    assert (len(desk.first.submits), len(desk.second.submits)) == (1, 2)


async def test_one_whose_network_is_no_longer_configured_is_refused(desk: Desk) -> None:
    desk.networks.by_name = {"second": desk.networks.by_name["second"]}

    with pytest.raises(RefundRefused, match="Nothing was paid"):
        await desk.refund()


async def test_too_little_in_the_wallet_refuses(desk: Desk) -> None:
    account, now = wallet_of(LIVE, SERVICE, Wallet.COLLECTION), desk.clock.now()
    spent = make_transfer(Reason.SPENT, account, Decimal("0.01"), "", now, network="first")
    await unit_of(desk.store).add_transfer(spent)

    with pytest.raises(RefundRefused, match=r"less than 10.50 is available in the collection"):
        await desk.refund()
