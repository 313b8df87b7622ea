"""Two people settle one payout at once: on every store its money moves once (D44)."""

import asyncio
from decimal import Decimal

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.operations import Operation
from sandbox_sim.ports import Store
from sandbox_sim.ports.network import StatusResult
from sandbox_sim.production.decisions import IllegalSettlement
from sandbox_sim.production.manual_actions import Decision, SettledByHand
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status
from tests.production.desk import LOST, Desk
from tests.units import unit_of

SILENT = StatusResult(Outcome.UNKNOWN, reason="no answer")

LEFT = {Status.FAILED: Decimal(15), Status.SUCCESSFUL: Decimal("4.50")}


pytestmark = pytest.mark.decision("D44")


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
async def test_of_two_settlements_at_once_one_counts(
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


async def test_a_settlement_and_the_word_of_the_network_at_once_move_the_money_once(
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
