"""The sandbox rules as a network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.networks.simulated.adapter import SimulatedNetwork, SubmitFailure, simulated
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import NetworkConfigError
from sandbox_sim.records.reports import Outcome
from tests.networks.fakes import KeptEvents, environment, query, request
from tests.turns import turns

pytestmark = pytest.mark.decision("D39")


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


@pytest.mark.parametrize("operation", sorted(SimulatedNetwork.capabilities.operations))
async def test_every_operation_is_taken_and_succeeds_after_a_second(operation: Operation) -> None:
    async with opened() as (network, events, clock):
        taken = await network.submit(request(operation))
        pending = await network.status(query())
        move(clock, seconds=1)
        await turns()
        decided = await network.status(query())

        assert (taken.outcome, pending.outcome) == (Outcome.PENDING, Outcome.PENDING)
        assert decided.outcome is Outcome.SUCCEEDED
        assert [each.outcome for each in events.notifications] == [Outcome.SUCCEEDED]
        assert events.notifications[0].attempt_id == "A1"


async def test_a_last_digit_9_is_taken_and_fails_later() -> None:
    async with opened() as (network, _, clock):
        taken = await network.submit(request(party="0244000009"))
        move(clock, seconds=1)
        decided = await network.status(query())

        assert (taken.outcome, decided.outcome) == (Outcome.PENDING, Outcome.FAILED)
        assert (
            decided.reason == "last digit 9 is a simulated decline (customer_number '0244000009')"
        )


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"party": "0540010000"}, "019"),
        ({"amount": Decimal(10001)}, "016"),
        ({"operation": Operation.PAYOUT, "payment_mode": "BNK", "nw": "GCB"}, "019"),
        ({"operation": Operation.SMS, "party": "233540010000"}, "S002"),
    ],
)
async def test_what_the_sandbox_does_not_take_is_refused(fields: dict[str, Any], code: str) -> None:
    async with opened() as (network, _, _clock):
        refused = await network.submit(request(**fields))
        asked = await network.status(query())

        assert (refused.outcome, refused.code) == (Outcome.REFUSED, code)
        assert not asked.found


async def test_both_forms_of_a_number_are_taken() -> None:
    async with opened() as (network, _, _clock):
        assert (await network.submit(request(party="233244000001"))).outcome is Outcome.PENDING


@pytest.mark.parametrize(
    ("failure", "outcome", "arrived"),
    [
        (SubmitFailure.NOT_SENT, Outcome.NOT_SENT, False),
        (SubmitFailure.LOST_REQUEST, Outcome.UNKNOWN, False),
        (SubmitFailure.LOST_ANSWER, Outcome.UNKNOWN, True),
    ],
)
async def test_a_request_or_an_answer_can_be_lost(
    failure: SubmitFailure, outcome: Outcome, arrived: bool
) -> None:
    async with opened(failures={failure: 1.0}) as (network, _, _clock):
        result = await network.submit(request())
        asked = await network.status(query())

        assert (result.outcome, result.network_fault) == (outcome, True)
        assert asked.found is arrived


async def test_a_repeat_with_the_same_reference_is_one_request() -> None:
    async with opened() as (network, _, _clock):
        first = await network.submit(request())
        second = await network.submit(request(repeated=True))

        assert network.carrier.submits == ["R1", "R1"]
        assert list(network.carrier.taken) == ["R1"]
        assert first.network_id == second.network_id


@pytest.mark.parametrize(
    ("notify", "count"), [("never", 0), ("once", 1), ("twice", 2), ("before_answer", 1)]
)
async def test_when_the_carrier_notifies(notify: str, count: int) -> None:
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


async def test_what_is_not_declared_is_not_sent() -> None:
    async with opened() as (network, _, _clock):
        result = await network.submit(request(currency="XOF"))

        assert result.outcome is Outcome.NOT_SENT
        assert network.carrier.submits == []


async def test_each_call_is_told_to_the_journal() -> None:
    async with opened() as (network, events, _clock):
        await network.submit(request())
        await network.status(query())

        assert [each.purpose for each in events.exchanges] == ["submit", "status"]
        assert {each.attempt_id for each in events.exchanges} == {"A1"}


@pytest.mark.parametrize(
    "settings", [{"latency_ms": -1}, {"failures": {"explode": 1}}, {"latency": 5}]
)
def test_settings_that_are_wrong_are_named(settings: dict[str, Any]) -> None:
    with pytest.raises(NetworkConfigError, match=next(iter(settings))):
        simulated(settings, environment())
