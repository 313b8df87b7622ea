"""The networks: what opens a circuit breaker, and the limits of calls into an adapter (D39)."""

from typing import Any

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import Health, StatusResult, SubmitRequest, SubmitResult
from sandbox_sim.production.circuit_breaker import OPEN_FOR, BreakerState
from sandbox_sim.records.reports import Outcome
from tests.networks.fakes import query, request
from tests.production.desk import LOST, NOT_SENT, Desk, raising

pytestmark = pytest.mark.decision("D39")

OURS = SubmitResult(Outcome.NOT_SENT, reason="no token: HTTP 401")
DECLINED = SubmitResult(Outcome.REFUSED, code="019")


async def submit(desk: Desk, *results: SubmitResult) -> None:
    """Submit to the first network, which gives these results."""
    desk.first.results.extend(results)
    for _ in results:
        await desk.networks.submit("first", request())


def state(desk: Desk) -> BreakerState:
    return desk.networks.breaker("first").state


async def desk_with_a_due_probe() -> Desk:
    desk = Desk()
    await submit(desk, *[LOST] * 5)
    desk.clock.move_to(desk.clock.now() + OPEN_FOR)
    return desk


async def test_the_backup_gets_the_payments_after_five_network_faults(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.fund_airtime("500")
    desk.first.results.extend([LOST] * 12)

    for number in range(12):
        await desk.pay(operation=Operation.AIRTIME, transaction_id=f"T{number}")

    assert (len(desk.first.submits), len(desk.second.submits)) == (5, 7)
    assert caplog.messages == ["the circuit breaker of network first opens: no answer"]


@pytest.mark.parametrize("answer", [DECLINED, SubmitResult(Outcome.UNKNOWN, reason="HTTP 302")])
async def test_an_answer_without_a_network_fault_resets_the_count_of_faults(
    desk: Desk, answer: SubmitResult
) -> None:
    await submit(desk, *[LOST] * 4, answer, *[LOST] * 4)

    assert state(desk) is BreakerState.CLOSED


async def test_a_submit_that_fails_on_our_side_keeps_the_count_of_faults(desk: Desk) -> None:
    await submit(desk, *[LOST] * 4, OURS, LOST)

    assert state(desk) is BreakerState.OPEN


async def test_a_probe_that_fails_on_our_side_may_be_repeated() -> None:
    desk = await desk_with_a_due_probe()

    await submit(desk, OURS)
    assert not desk.networks.is_blocked("first")
    await submit(desk, SubmitResult(Outcome.PENDING))

    assert state(desk) is BreakerState.CLOSED


async def test_a_probe_that_cannot_connect_opens_the_breaker_again() -> None:
    desk = await desk_with_a_due_probe()

    await submit(desk, NOT_SENT)

    assert (state(desk), desk.networks.is_blocked("first")) == (BreakerState.OPEN, True)


async def test_a_submit_that_raises_is_unknown_and_counts_as_a_network_fault(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_request: SubmitRequest) -> Any:
        raise KeyError("status")

    monkeypatch.setattr(desk.first, "submit", broken)
    results = [await desk.networks.submit("first", request()) for _ in range(6)]

    assert [each.outcome for each in results] == [Outcome.UNKNOWN] * 5 + [Outcome.NOT_SENT]
    assert caplog.messages.count("the adapter of network first failed to submit") == 5


async def test_a_health_check_or_status_query_that_raises_has_a_failed_result(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("health", "status"):
        monkeypatch.setattr(desk.first, name, raising(KeyError("status")))

    assert await desk.networks.health("first") == Health(
        ok=False, detail="the adapter failed: KeyError"
    )
    assert await desk.networks.status("first", query()) == StatusResult(
        Outcome.UNKNOWN, reason="the adapter failed"
    )
    assert caplog.messages[-1] == "the adapter of network first failed to ask for a status"


async def test_each_submit_counts_by_its_outcome(desk: Desk) -> None:
    await submit(desk, *[LOST] * 2, DECLINED)

    assert desk.networks.submits("first") == {Outcome.UNKNOWN: 2, Outcome.REFUSED: 1}
    assert not desk.networks.submits("second")
