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


async def opened_and_probing_is_due() -> Desk:
    desk = Desk()
    await submit(desk, *[LOST] * 5)
    desk.clock.move_to(desk.clock.now() + OPEN_FOR)
    return desk


async def test_after_five_network_faults_the_backup_gets_the_payments(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.fund_airtime("500")
    desk.first.results.extend([LOST] * 12)

    for number in range(12):
        await desk.pay(operation=Operation.AIRTIME, transaction_id=f"T{number}")

    assert (len(desk.first.submits), len(desk.second.submits)) == (5, 7)
    assert caplog.messages == ["the circuit breaker of network first opens: no answer"]


@pytest.mark.parametrize("answer", [DECLINED, SubmitResult(Outcome.UNKNOWN, reason="HTTP 302")])
async def test_an_answer_that_is_no_network_fault_starts_the_count_again(
    desk: Desk,
    answer: SubmitResult,
) -> None:
    await submit(desk, *[LOST] * 4, answer, *[LOST] * 4)

    assert state(desk) is BreakerState.CLOSED


async def test_what_is_not_sent_for_a_reason_of_ours_changes_no_count(desk: Desk) -> None:
    await submit(desk, *[LOST] * 4, OURS, LOST)

    assert state(desk) is BreakerState.OPEN


async def test_a_probe_that_is_not_sent_for_a_reason_of_ours_is_given_back() -> None:
    desk = await opened_and_probing_is_due()

    await submit(desk, OURS)
    assert not desk.networks.is_blocked("first")
    await submit(desk, SubmitResult(Outcome.PENDING))

    assert state(desk) is BreakerState.CLOSED


async def test_a_probe_that_cannot_connect_opens_the_breaker_again() -> None:
    desk = await opened_and_probing_is_due()

    await submit(desk, NOT_SENT)

    assert (state(desk), desk.networks.is_blocked("first")) == (BreakerState.OPEN, True)


async def test_an_adapter_that_raises_may_have_sent_and_counts_as_a_network_fault(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_request: SubmitRequest) -> Any:
        raise KeyError("status")

    monkeypatch.setattr(desk.first, "submit", broken)
    results = [await desk.networks.submit("first", request()) for _ in range(6)]

    assert [each.outcome for each in results] == [Outcome.UNKNOWN] * 5 + [Outcome.NOT_SENT]
    assert caplog.messages.count("the adapter of network first failed to submit") == 5


async def test_an_adapter_that_fails_to_tell_its_health_or_a_status_is_unwell_and_says_nothing(
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
