"""Asking for the outcome of open attempts: schedule, repeated submits, final outcomes (D39)."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.domain.networks.attempts import Terms
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.payments.transactions import Status
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.ports import StoreError
from sandbox_sim.gateway.ports.network import StatusResult
from tests.gateway.networks.desk import FAILED, LOST, NOT_FOUND, SUCCEEDED, Desk

PAYOUT: dict[str, Any] = {"operation": Operation.PAYOUT}
AVAILABLE, HELD = "service/55/payout/available/GHS", "service/55/payout/held/GHS"

pytestmark = pytest.mark.decision("D39")


async def pay(desk: Desk, **fields: Any) -> None:
    await desk.fund("50")
    await desk.pay(**fields)


async def test_the_network_is_asked_each_time_twice_as_late() -> None:
    desk = Desk()
    await pay(desk)
    asked: list[int] = []

    for second in range(60):
        await desk.wait(seconds=1)
        asked += [second + 1] * (len(desk.first.queries) - len(asked))

    # 5 s after the answer, then 10 and 20 s later, with up to a tenth of jitter.
    assert [5 <= asked[0] <= 6, 10 <= asked[1] - asked[0] <= 12, 20 <= asked[2] - asked[1] <= 23]
    assert len(asked) == 3


async def test_a_success_ends_the_payment_once() -> None:
    desk = Desk()
    await pay(desk, **PAYOUT)
    desk.first.statuses.append(SUCCEEDED)

    await desk.wait(seconds=6)
    await desk.wait(hours=1)

    found = await desk.transaction()
    assert found is not None
    assert found.status is Status.SUCCESSFUL
    assert len(await desk.callbacks()) == len(desk.first.queries) == 1
    balances = await desk.balances()
    assert HELD not in balances
    assert balances["network/first/clearing/GHS"] == Decimal("-39.50")


async def test_a_payout_that_failed_is_voided_after_the_grace() -> None:
    desk = Desk(Terms(failure_grace=timedelta(minutes=10)))
    await pay(desk, **PAYOUT)
    desk.first.statuses.extend([FAILED] * 2)

    await desk.wait(seconds=6)
    assert (await desk.balances())[HELD] == Decimal("10.50")
    await desk.wait(minutes=10)

    found = await desk.transaction()
    assert found is not None
    assert found.status is Status.FAILED
    assert (await desk.balances())[AVAILABLE] == Decimal(50)
    (callback,) = await desk.callbacks()
    assert "001/FAILED" in callback.body


async def test_a_reference_that_is_not_found_never_fails_a_payment() -> None:
    desk = Desk()
    desk.first.results.append(LOST)
    await pay(desk)
    desk.first.statuses.extend([NOT_FOUND] * 9)

    await desk.wait(seconds=20)
    await desk.wait(minutes=5)

    (attempt,) = await desk.attempts()
    assert (attempt.outcome, attempt.submits) == (Outcome.UNKNOWN, 1)
    assert len(desk.first.submits) == 1


async def test_a_lost_request_goes_out_again_where_the_network_knows_its_reference() -> None:
    desk = Desk(repeats_within=timedelta(days=1))
    desk.first.results.append(LOST)
    await pay(desk)
    desk.first.statuses.extend([NOT_FOUND] * 2)

    await desk.wait(seconds=20)
    assert len(desk.first.submits) == 1
    await desk.wait(minutes=5)

    first, again = desk.first.submits
    assert (again.reference, again.repeated) == (first.reference, True)
    (attempt,) = await desk.attempts()
    assert (attempt.submits, attempt.outcome) == (2, Outcome.PENDING)


async def test_a_contradiction_goes_to_suspense_and_changes_nothing_final() -> None:
    desk = Desk()
    await pay(desk)
    desk.first.statuses.append(SUCCEEDED)
    await desk.wait(seconds=6)
    (attempt,) = await desk.attempts()

    now = desk.clock.now()
    report = FAILED.report
    await desk.store.run(lambda unit: desk.recorder.record(unit, attempt, report, now))

    (after,) = await desk.attempts()
    assert (after.outcome, after.contradicted_by) == (Outcome.SUCCEEDED, Outcome.FAILED)
    balances = await desk.balances()
    assert balances["suspense/GHS"] == Decimal("-10.50")
    assert balances["service/55/collection/available/GHS"] == Decimal("10.50")
    assert len(await desk.callbacks()) == 1


async def test_a_question_is_asked_again_when_the_store_is_back() -> None:
    desk = Desk()
    await pay(desk)
    desk.first.statuses.extend([SUCCEEDED] * 2)
    desk.clock.move_to(desk.clock.now() + timedelta(seconds=6))
    (job,) = await desk.store.run(lambda unit: unit.claim_due(desk.clock.now(), 9))
    desk.store.failures, desk.store.error = 1, StoreError("away")

    desk.asking.background.start(job)
    await desk.asking.background.wait_idle()

    found = await desk.transaction()
    assert found is not None
    assert found.status is Status.SUCCESSFUL


async def test_a_network_that_wants_not_to_be_asked_is_left_alone() -> None:
    desk = Desk()
    await pay(desk)
    desk.first.statuses.append(StatusResult(Outcome.PENDING, retry_after=timedelta(minutes=30)))

    await desk.wait(seconds=6)
    await desk.wait(minutes=29)
    assert len(desk.first.queries) == 1
    await desk.wait(minutes=2)

    assert len(desk.first.queries) == 2
