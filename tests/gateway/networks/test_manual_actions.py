"""What a person does in mode P: settle what waits, top up units (D39)."""

from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.domain.double_entry.entries import BadTransfer
from sandbox_sim.domain.ledger import Account as Wallet
from sandbox_sim.domain.networks.attempts import IllegalSettlement
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.networks.manual_actions import Decision, LiveActions
from tests.gateway.networks.desk import LOST, SUCCEEDED, Desk
from tests.records import SERVICE

PAYOUT: dict[str, Any] = {"operation": Operation.PAYOUT}

pytestmark = pytest.mark.decision("D39")


async def settle(
    desk: Desk, to: Status, by: str = "ama", reason: str = "the network told us by phone"
) -> Transaction | None:
    (attempt,) = await desk.attempts()
    actions = LiveActions(desk.store, desk.clock, desk.recorder)
    return await actions.settle(attempt.network_transaction_id, Decision(to, by, reason))


@pytest.mark.parametrize(
    ("to", "left"),
    [(Status.SUCCESSFUL, "4.50"), (Status.FAILED, "15"), (Status.CANCELLED, "15")],
)
async def test_what_waits_is_settled_with_its_money_and_callback(to: Status, left: str) -> None:
    desk = Desk()
    await desk.fund("15")
    desk.first.results.append(LOST)
    await desk.pay(**PAYOUT)

    settled = await settle(desk, to)

    assert settled is not None
    assert settled.status is to
    assert (await desk.balances())["service/55/payout/available/GHS"] == Decimal(left)
    (callback,) = await desk.callbacks()
    assert f'"{to}/' in callback.body
    (attempt,) = await desk.attempts()
    assert (attempt.settled_by, attempt.settled_reason) == ("ama", "the network told us by phone")


@pytest.mark.parametrize("missing", ["by", "reason"])
async def test_who_and_why_is_required(missing: str) -> None:
    desk = Desk()
    await desk.pay()

    with pytest.raises(IllegalSettlement, match="reason"):
        await settle(desk, Status.FAILED, **{missing: " "})

    found = await desk.transaction()
    assert found is not None
    assert found.status is Status.PENDING


async def test_what_is_final_stays_so() -> None:
    desk = Desk()
    await desk.pay()
    desk.first.statuses.append(SUCCEEDED)
    await desk.wait(seconds=6)

    with pytest.raises(IllegalSettlement, match="what is final stays so"):
        await settle(desk, Status.FAILED)


async def test_units_are_topped_up_and_money_is_not() -> None:
    desk = Desk()
    actions = LiveActions(desk.store, desk.clock, desk.recorder)

    assert await actions.topup(SERVICE, Wallet.SMS, 20) == 20
    assert await actions.topup(SERVICE, Wallet.SMS, 5) == 25
    with pytest.raises(BadTransfer):
        await actions.topup(SERVICE, Wallet.PAYOUT, 5)
