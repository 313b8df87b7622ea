"""What a person does in mode P: settle what waits (D39, D44)."""

from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import StatusResult
from sandbox_sim.production.attempt_views import LiveRecordReader
from sandbox_sim.production.decisions import ForceNeeded, IllegalSettlement
from sandbox_sim.production.manual_actions import Decision, SettledByHand
from sandbox_sim.records.attempts import StoredDecision
from sandbox_sim.records.jobs import JobKind
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status
from tests.production.desk import FAILED, LOST, NOT_FOUND, SUCCEEDED, Desk
from tests.units import unit_of

PAYOUT: dict[str, Any] = {"operation": Operation.PAYOUT}

SILENT = StatusResult(Outcome.UNKNOWN, reason="no answer")

AVAILABLE = "service/55/payout/GHS available"


pytestmark = [pytest.mark.decision("D39"), pytest.mark.decision("D44")]


async def settle(
    desk: Desk,
    to: Status,
    by: str = "ama",
    reason: str = "the network told us by phone",
    **confirmed: Any,
) -> SettledByHand | None:
    (attempt,) = await desk.attempts()
    decision = Decision(to, by, reason, **confirmed)
    return await desk.actions.settle(attempt.network_transaction_id, decision)


async def decisions(desk: Desk) -> list[StoredDecision]:
    (attempt,) = await desk.attempts()
    return list(await unit_of(desk.store).decisions_of(attempt.id))


async def pay_out(desk: Desk) -> None:
    """A payout of 10.50 out of 15, whose answer is lost."""
    await desk.fund("15")
    desk.first.results.append(LOST)
    await desk.pay(**PAYOUT)


async def available(desk: Desk) -> Decimal:
    return (await desk.balances())[AVAILABLE]


@pytest.mark.decision("D31")
@pytest.mark.parametrize(
    ("to", "left"),
    [(Status.SUCCESSFUL, "4.50"), (Status.FAILED, "15"), (Status.CANCELLED, "15")],
)
async def test_what_waits_is_settled_with_its_money_and_callback(
    desk: Desk, to: Status, left: str
) -> None:
    await pay_out(desk)
    await desk.wait(days=1)
    desk.first.statuses.append(SILENT)

    settled = await settle(desk, to)

    assert settled is not None
    assert settled.transaction.status is to
    assert settled.network_said == "network first gives no outcome (no answer)"
    assert await available(desk) == Decimal(left)
    (callback,) = await desk.callbacks()
    assert f'"{to}/' in callback.body
    (attempt,) = await desk.attempts()
    assert (attempt.settled_by, attempt.settled_reason) == ("ama", "the network told us by phone")


async def test_a_part_that_was_confirmed_is_posted_and_the_rest_is_free_again(desk: Desk) -> None:
    await pay_out(desk)
    await desk.wait(days=1)
    desk.first.statuses.append(SILENT)

    settled = await settle(desk, Status.SUCCESSFUL, amount=Decimal(8), network_id="N1")

    assert settled is not None
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
async def test_a_collection_is_credited_with_what_was_confirmed(desk: Desk, amount: str) -> None:
    await desk.pay()
    desk.first.statuses.append(SILENT)

    await settle(desk, Status.SUCCESSFUL, amount=Decimal(amount))

    assert (await desk.balances())["service/55/collection/GHS available"] == Decimal(amount)


async def test_one_movement_of_the_network_settles_one_payment(desk: Desk) -> None:
    await desk.pay()
    desk.first.statuses.append(SILENT)
    await settle(desk, Status.SUCCESSFUL, network_id="N1")
    await desk.pay(transaction_id="T2")
    desk.first.statuses.append(SILENT)
    second = await desk.transaction("T2")
    assert second is not None
    decision = Decision(Status.SUCCESSFUL, "ama", "seen", network_id="N1")

    with pytest.raises(IllegalSettlement, match="N1 is transaction T1 of service 55"):
        await desk.actions.settle(second.network_transaction_id, decision)


async def test_a_network_that_decides_with_another_amount_than_the_person_is_named(
    desk: Desk,
) -> None:
    await pay_out(desk)
    desk.first.statuses.append(SUCCEEDED)

    with pytest.raises(IllegalSettlement, match="which decides it"):
        await settle(desk, Status.SUCCESSFUL, amount=Decimal(8))

    assert await available(desk) == Decimal("4.50")


@pytest.mark.parametrize("to", [Status.FAILED, Status.CANCELLED])
async def test_money_that_the_network_calls_pending_is_not_given_back(
    desk: Desk, to: Status
) -> None:
    await pay_out(desk)
    await desk.wait(days=1)

    with pytest.raises(ForceNeeded, match=r"network first says pending.*--force"):
        await settle(desk, to)

    assert await available(desk) == Decimal("4.50")
    assert await decisions(desk) == []
    (attempt,) = await desk.attempts()
    assert (attempt.outcome, attempt.settled_by) == (Outcome.PENDING, "")


@pytest.mark.parametrize("answer", [SILENT, NOT_FOUND])
async def test_money_is_not_given_back_while_the_network_is_still_asked_often(
    desk: Desk,
    answer: StatusResult,
) -> None:
    await pay_out(desk)
    await desk.wait(hours=23)
    desk.first.statuses.append(answer)

    with pytest.raises(ForceNeeded, match="may still be carried out"):
        await settle(desk, Status.FAILED)

    assert await available(desk) == Decimal("4.50")


async def test_a_network_that_cannot_be_asked_is_waited_for() -> None:
    desk = Desk(has_status=False)
    await pay_out(desk)

    with pytest.raises(ForceNeeded, match="network first cannot be asked"):
        await settle(desk, Status.FAILED)
    await desk.wait(days=1)

    assert await settle(desk, Status.FAILED)
    assert desk.first.queries == []


async def test_the_answer_to_the_question_is_saved_though_the_decision_is_refused(
    desk: Desk,
) -> None:
    await pay_out(desk)
    (before,) = await desk.attempts()

    with pytest.raises(ForceNeeded):
        await settle(desk, Status.FAILED)

    (after,) = await desk.attempts()
    assert (after.polls, after.outcome) == (before.polls + 1, Outcome.PENDING)
    assert after.next_ask_at is not None
    await desk.wait(seconds=11)
    assert len(desk.first.queries) == 2


async def test_force_settles_against_the_network_and_is_kept_with_what_it_said(desk: Desk) -> None:
    await pay_out(desk)

    settled = await settle(desk, Status.FAILED, force=True)

    assert settled is not None
    assert settled.transaction.status is Status.FAILED
    assert await available(desk) == Decimal(15)
    (kept,) = await decisions(desk)
    assert (kept.status, kept.by, kept.reason) == (
        Status.FAILED, "ama", "the network told us by phone"
    )  # fmt: skip
    assert (kept.forced, kept.network_said) == (True, "network first says pending")


async def test_force_that_was_not_needed_is_not_kept_as_such(desk: Desk) -> None:
    await pay_out(desk)
    desk.first.statuses.append(SILENT)

    await settle(desk, Status.SUCCESSFUL, force=True)

    (kept,) = await decisions(desk)
    assert not kept.forced


async def test_a_network_that_decides_when_it_is_asked_goes_before_the_person(desk: Desk) -> None:
    await pay_out(desk)
    desk.first.statuses.append(SUCCEEDED)

    with pytest.raises(IllegalSettlement, match="first says succeeded, which decides it"):
        await settle(desk, Status.FAILED, force=True)

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
async def test_where_the_network_decides_as_the_person_would_the_network_did_it(
    desk: Desk, answer: StatusResult, to: Status, amount: Decimal | None
) -> None:
    await desk.pay()
    desk.first.statuses.append(answer)

    settled = await settle(desk, to, amount=amount)

    assert settled is not None
    assert settled.transaction.status is to
    assert "nothing was settled by hand" in settled.network_said
    (attempt,) = await desk.attempts()
    assert attempt.settled_by == ""


async def test_a_wrong_decision_is_noticed_within_minutes(desk: Desk) -> None:
    await pay_out(desk)
    await settle(desk, Status.FAILED, force=True)
    desk.first.statuses.append(SUCCEEDED)

    assert JobKind.RECHECK_FINAL in await desk.wait(minutes=1)

    (waiting,) = await LiveRecordReader(desk.store, desk.clock, desk.networks).waiting()
    assert waiting["waiting"] == ["contradiction: status says succeeded after failed"]
    (kept,) = await decisions(desk)
    assert kept.by == "ama"


@pytest.mark.parametrize("missing", ["by", "reason"])
async def test_who_and_why_is_required_before_the_network_is_asked(
    desk: Desk, missing: str
) -> None:
    await desk.pay()
    given = {"by": "ama", "reason": "seen", missing: " "}

    with pytest.raises(IllegalSettlement, match="reason"):
        await settle(desk, Status.FAILED, given["by"], given["reason"])

    assert desk.first.queries == []
    assert await desk.status() is Status.PENDING
