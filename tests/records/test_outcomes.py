"""Which status a client sees for an outcome."""

import pytest

from sandbox_sim.records.reports import Outcome, status_of
from sandbox_sim.records.transactions import Status


@pytest.mark.decision("D39")
@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome.NOT_SENT, None),
        (Outcome.REFUSED, None),
        (Outcome.PENDING, Status.PENDING),
        (Outcome.UNKNOWN, Status.PENDING),
        (Outcome.SUCCEEDED, Status.SUCCESSFUL),
        (Outcome.FAILED, Status.FAILED),
    ],
)
def test_the_status_that_a_client_sees(outcome: Outcome, status: Status | None) -> None:
    assert status_of(outcome) == status


@pytest.mark.decision("D39")
def test_only_a_failure_can_be_a_cancellation() -> None:
    assert status_of(Outcome.FAILED, cancelled=True) is Status.CANCELLED
    assert status_of(Outcome.SUCCEEDED, cancelled=True) is Status.SUCCESSFUL
