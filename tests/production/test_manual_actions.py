"""A person settles an attempt of mode P (D39, D44)."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.ports.network import StatusResult
from sandbox_sim.production.decisions import ForceNeeded, IllegalSettlement
from sandbox_sim.production.manual_actions import Decision, SettledByHand
from sandbox_sim.records.attempts import StoredDecision
from sandbox_sim.records.jobs import JobKind
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status
from tests.production.desk import AVAILABLE, FAILED, LOST, NOT_FOUND, PAYOUT, SUCCEEDED, Desk
from tests.units import unit_of

SILENT = StatusResult(Outcome.UNKNOWN, reason="no answer")

pytestmark = [pytest.mark.decision("D39"), pytest.mark.decision("D44")]


async def settle(
    desk: Desk,
    to: Status,
    answer: StatusResult | None = None,
    *,
    by: str = "ama",
    reason: str = "the network told us by phone",
    **confirmed: Any,
) -> SettledByHand:
    """Settle the only payment; the network gives this answer to the status query before that."""
    if answer is not None:
        desk.first.statuses.append(answer)
    network_id = (await desk.attempt()).network_transaction_id
    settled = await desk.actions.settle(network_id, Decision(to, by, reason, **confirmed))
    assert settled is not None
    return settled


async def decisions(desk: Desk) -> Sequence[StoredDecision]:
    return await unit_of(desk.store).decisions_of((await desk.attempt()).id)


async def pay_out(desk: Desk) -> None:
    """A payout of 10.50 out of 15, whose answer is lost."""
    await desk.fund("15")
    await desk.pay(LOST, **PAYOUT)


async def available(desk: Desk) -> Decimal:
    return (await desk.balances())[AVAILABLE]


@pytest.mark.decision("D31")
@pytest.mark.parametrize(
    ("to", "left"), [(Status.SUCCESSFUL, "4.50"), (Status.FAILED, "15"), (Status.CANCELLED, "15")]
)
async def test_settling_a_payout_moves_its_money_and_sends_its_callback(
    desk: Desk, to: Status, left: str
) -> None:
    await pay_out(desk)
    await desk.wait(days=1)
    settled = await settle(desk, to, SILENT)

    assert settled.transaction.status is to
    assert settled.network_said == "network first gives no outcome (no answer)"
    assert await available(desk) == Decimal(left)
    (callback,) = await desk.callbacks()
    assert f'"{to}/' in callback.body
    attempt = await desk.attempt()
    assert (attempt.settled_by, attempt.settled_reason) == ("ama", "the network told us by phone")


async def test_a_confirmed_part_is_posted_and_the_rest_is_returned(desk: Desk) -> None:
    await pay_out(desk)
    await desk.wait(days=1)
    settled = await settle(desk, Status.SUCCESSFUL, SILENT, amount=Decimal(8), network_id="N1")

    assert settled.transaction.payment.amount == Decimal("10.50")
    assert await available(desk) == 7
    assert await desk.balances() == {AVAILABLE: 7, "network/first/clearing/GHS": -7}
    (attempt,), (kept,) = await desk.attempts(), await decisions(desk)
    assert (attempt.amount, attempt.confirmed_amount) == (Decimal("10.50"), Decimal(8))
    assert attempt.network_id == kept.network_id == "N1"
    assert kept.amount == 8
    (callback,) = await desk.callbacks()
    assert '"amount":"10.5"' in callback.body


@pytest.mark.parametrize("amount", ["8", "12"])
async def test_a_collection_is_credited_with_the_confirmed_amount(desk: Desk, amount: str) -> None:
    await desk.pay()
    await settle(desk, Status.SUCCESSFUL, SILENT, amount=Decimal(amount))

    assert (await desk.balances())["service/55/collection/GHS available"] == Decimal(amount)


async def test_a_network_id_settles_only_one_payment(desk: Desk) -> None:
    await desk.pay()
    await settle(desk, Status.SUCCESSFUL, SILENT, network_id="N1")
    await desk.pay(transaction_id="T2")
    desk.first.statuses.append(SILENT)
    second = await desk.transaction("T2")
    decision = Decision(Status.SUCCESSFUL, "ama", "seen", network_id="N1")

    with pytest.raises(IllegalSettlement, match="N1 is transaction T1 of service 55"):
        await desk.actions.settle(second.network_transaction_id, decision)


async def test_a_settlement_is_refused_if_the_network_decides_another_amount(desk: Desk) -> None:
    await pay_out(desk)
    with pytest.raises(IllegalSettlement, match="which decides it"):
        await settle(desk, Status.SUCCESSFUL, SUCCEEDED, amount=Decimal(8))

    assert await available(desk) == Decimal("4.50")


@pytest.mark.parametrize("to", [Status.FAILED, Status.CANCELLED])
async def test_a_pending_payout_is_not_returned_without_force(desk: Desk, to: Status) -> None:
    await pay_out(desk)
    await desk.wait(days=1)

    with pytest.raises(ForceNeeded, match=r"network first says pending.*--force"):
        await settle(desk, to)

    assert await available(desk) == Decimal("4.50")
    assert await decisions(desk) == []
    attempt = await desk.attempt()
    assert (attempt.outcome, attempt.settled_by) == (Outcome.PENDING, "")


@pytest.mark.parametrize("answer", [SILENT, NOT_FOUND])
async def test_money_is_not_returned_without_force_before_polling_gives_up(
    desk: Desk, answer: StatusResult
) -> None:
    await pay_out(desk)
    await desk.wait(hours=23)
    with pytest.raises(ForceNeeded, match="may still be carried out"):
        await settle(desk, Status.FAILED, answer)

    assert await available(desk) == Decimal("4.50")


async def test_failing_a_payout_needs_force_for_a_day_at_a_network_without_status_query() -> None:
    desk = Desk(has_status=False)
    await pay_out(desk)

    with pytest.raises(ForceNeeded, match="network first cannot be asked"):
        await settle(desk, Status.FAILED)
    await desk.wait(days=1)

    await settle(desk, Status.FAILED)
    assert desk.first.queries == []


async def test_the_status_answer_is_saved_if_the_settlement_is_refused(desk: Desk) -> None:
    await pay_out(desk)
    before = await desk.attempt()

    with pytest.raises(ForceNeeded):
        await settle(desk, Status.FAILED)

    after = await desk.attempt()
    assert (after.polls, after.outcome) == (before.polls + 1, Outcome.PENDING)
    assert after.next_ask_at is not None
    await desk.wait(seconds=11)
    assert len(desk.first.queries) == 2


async def test_a_forced_settlement_is_kept_with_the_answer_of_the_network(desk: Desk) -> None:
    await pay_out(desk)

    settled = await settle(desk, Status.FAILED, force=True)

    assert settled.transaction.status is Status.FAILED
    assert await available(desk) == Decimal(15)
    (kept,) = await decisions(desk)
    assert (kept.status, kept.by) == (Status.FAILED, "ama")
    assert kept.reason == "the network told us by phone"
    assert (kept.forced, kept.network_said) == (True, "network first says pending")


async def test_a_settlement_that_did_not_need_force_is_not_kept_as_forced(desk: Desk) -> None:
    await pay_out(desk)
    await settle(desk, Status.SUCCESSFUL, SILENT, force=True)

    (kept,) = await decisions(desk)
    assert not kept.forced


async def test_an_outcome_from_the_status_query_prevails_over_the_settlement(desk: Desk) -> None:
    await pay_out(desk)
    with pytest.raises(IllegalSettlement, match="first says succeeded, which decides it"):
        await settle(desk, Status.FAILED, SUCCEEDED, force=True)

    assert await available(desk) == Decimal("4.50")
    assert await desk.status() is Status.SUCCESSFUL
    assert len(await desk.callbacks()) == 1
    assert await decisions(desk) == []


@pytest.mark.parametrize(
    ("answer", "to", "amount"),
    [
        (SUCCEEDED, Status.SUCCESSFUL, None),
        (SUCCEEDED, Status.SUCCESSFUL, Decimal("10.50")),
        (FAILED, Status.FAILED, None),
    ],
)
async def test_an_outcome_that_equals_the_settlement_is_credited_to_the_network(
    desk: Desk, answer: StatusResult, to: Status, amount: Decimal | None
) -> None:
    await desk.pay()
    settled = await settle(desk, to, answer, amount=amount)

    assert settled.transaction.status is to
    assert "nothing was settled by hand" in settled.network_said
    assert (await desk.attempt()).settled_by == ""


async def test_a_wrong_settlement_is_noticed_within_a_minute(desk: Desk) -> None:
    await pay_out(desk)
    await settle(desk, Status.FAILED, force=True)
    assert JobKind.RECHECK_FINAL in await desk.query(SUCCEEDED, minutes=1)

    (waiting,) = await desk.records.waiting()
    assert waiting["waiting"] == ["contradiction: status says succeeded after failed"]
    (kept,) = await decisions(desk)
    assert kept.by == "ama"


@pytest.mark.parametrize("missing", ["by", "reason"])
async def test_a_settlement_without_name_or_reason_is_refused_before_the_query(
    desk: Desk, missing: str
) -> None:
    await desk.pay()
    with pytest.raises(IllegalSettlement, match="reason"):
        await settle(desk, Status.FAILED, None, **{missing: " "})

    assert desk.first.queries == []
    assert await desk.status() is Status.PENDING
