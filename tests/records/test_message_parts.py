"""What the parts of a message say together (D39)."""

from itertools import permutations

import pytest

from sandbox_sim.records.exchanges import MessagePart, together
from sandbox_sim.records.reports import Outcome

pytestmark = pytest.mark.decision("D39")


ARRIVED, FAILED, WAITING = Outcome.SUCCEEDED, Outcome.FAILED, Outcome.PENDING


def parts(*outcomes: Outcome, total: int | None = None) -> list[MessagePart]:
    count = total or len(outcomes)
    return [
        MessagePart("sms", "A1", number, count, f"id-{number}", outcome)
        for number, outcome in enumerate(outcomes, 1)
    ]


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([ARRIVED], ARRIVED),
        ([ARRIVED, ARRIVED, ARRIVED], ARRIVED),
        ([ARRIVED, WAITING, ARRIVED], WAITING),
        ([ARRIVED, FAILED, ARRIVED], FAILED),
        ([FAILED, WAITING], FAILED),
        ([WAITING], WAITING),
        ([], WAITING),
    ],
)
def test_a_message_arrived_when_all_its_parts_did_and_failed_when_one_did(
    outcomes: list[Outcome], expected: Outcome
) -> None:
    for order in permutations(parts(*outcomes)):
        assert together(order) is expected


def test_a_part_that_the_network_may_not_have_is_waited_for() -> None:
    assert together(parts(ARRIVED, ARRIVED, total=3)) is WAITING


def test_a_part_that_is_known_twice_counts_once() -> None:
    (one, _) = parts(ARRIVED, WAITING)

    assert together([one, one]) is WAITING


@pytest.mark.parametrize("first", [ARRIVED, FAILED])
@pytest.mark.parametrize("later", list(Outcome))
def test_a_part_keeps_its_first_final_outcome(first: Outcome, later: Outcome) -> None:
    (part,) = parts(WAITING)

    assert part.reported(first).reported(later).outcome is first


def test_a_report_that_says_nothing_changes_nothing() -> None:
    (part,) = parts(WAITING)

    assert part.reported(Outcome.UNKNOWN) == part
