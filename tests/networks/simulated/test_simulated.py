"""The sandbox rules as a network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.networks.simulated.adapter import SimulatedNetwork, simulated
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import NetworkConfigError
from sandbox_sim.records.reports import Outcome
from tests.networks.fakes import KeptEvents, environment, query, request
from tests.turns import turns

pytestmark = pytest.mark.decision("D39")

OPERATIONS = SimulatedNetwork.capabilities.operations
DECLINED = "last digit 9 is a simulated decline (customer_number '0244000009')"


@asynccontextmanager
async def opened(**settings: Any) -> AsyncIterator[tuple[SimulatedNetwork, KeptEvents, Any]]:
    where = environment()
    network = simulated(settings, where)
    assert isinstance(network, SimulatedNetwork)
    events = KeptEvents()
    await network.open(events)
    try:
        yield network, events, where.clock
    finally:
        await network.close()


def move(clock: VirtualClock, **delta: float) -> None:
    clock.move_to(clock.now() + timedelta(**delta))


@pytest.mark.parametrize(
    ("operation", "party", "outcome", "reason"),
    [
        *((each, "", Outcome.SUCCEEDED, "") for each in sorted(OPERATIONS)),
        (Operation.COLLECT, "233244000001", Outcome.SUCCEEDED, ""),
        (Operation.COLLECT, "0244000009", Outcome.FAILED, DECLINED),
    ],
)
async def test_every_operation_ends_after_a_second_as_the_last_digit_decides(
    operation: Operation, party: str, outcome: Outcome, reason: str
) -> None:
    asked = request(operation, **({"party": party} if party else {}))
    async with opened() as (network, events, clock):
        taken = await network.submit(asked)
        pending = await network.status(query())
        move(clock, seconds=1)
        await turns()
        decided = await network.status(query())

        assert (taken.outcome, pending.outcome) == (Outcome.PENDING, Outcome.PENDING)
        assert (decided.outcome, decided.reason) == (outcome, reason)
        assert [each.outcome for each in events.notifications] == [outcome]
        assert events.notifications[0].attempt_id == "A1"
        assert [each.purpose for each in events.exchanges] == ["submit", "status", "status"]
        assert {each.attempt_id for each in events.exchanges} == {"A1"}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"party": "0540010000"}, "019"),
        ({"amount": Decimal(10001)}, "016"),
        ({"operation": Operation.PAYOUT, "payment_mode": "BNK", "nw": "GCB"}, "019"),
        ({"operation": Operation.SMS, "party": "233540010000"}, "S002"),
    ],
)
async def test_a_refusal_of_the_sandbox_keeps_its_code(fields: dict[str, Any], code: str) -> None:
    async with opened() as (network, _, _clock):
        refused = await network.submit(request(**fields))
        asked = await network.status(query())

        assert (refused.outcome, refused.code) == (Outcome.REFUSED, code)
        assert not asked.found


@pytest.mark.parametrize(
    ("notify", "count"), [("never", 0), ("once", 1), ("twice", 2), ("before_answer", 1)]
)
async def test_the_carrier_notifies_as_the_setting_says(notify: str, count: int) -> None:
    async with opened(notify=notify) as (network, events, clock):
        await network.submit(request())
        before = len(events.notifications)
        move(clock, seconds=1)
        await turns()

        assert len(events.notifications) == count
        assert before == (1 if notify == "before_answer" else 0)


async def test_a_notification_can_be_late() -> None:
    async with opened(notify_after_ms=60_000) as (network, events, clock):
        await network.submit(request())
        move(clock, seconds=60)
        await turns()
        assert events.notifications == []
        assert (await network.status(query())).outcome is Outcome.SUCCEEDED

        move(clock, seconds=1)
        await turns()
        assert len(events.notifications) == 1


@pytest.mark.parametrize(
    "settings", [{"latency_ms": -1}, {"failures": {"explode": 1}}, {"latency": 5}]
)
def test_a_wrong_setting_is_named(settings: dict[str, Any]) -> None:
    with pytest.raises(NetworkConfigError, match=next(iter(settings))):
        simulated(settings, environment())
