"""The circuit breaker of a network."""

from datetime import timedelta

import pytest

from sandbox_sim.production.circuit_breaker import Breaker
from tests.production.samples import NOON

OPEN_FOR, PROBE_ENDS_AFTER = timedelta(seconds=30), timedelta(minutes=1)

pytestmark = pytest.mark.decision("D39")


def after_faults(count: int) -> Breaker:
    breaker = Breaker()
    for _ in range(count):
        breaker = breaker.after_fault(NOON)
    return breaker


def test_the_fifth_fault_opens_it_and_a_late_one_of_before_does_not_keep_it_open() -> None:
    assert after_faults(4).admit(NOON)[1]
    assert not after_faults(5).admit(NOON)[1]

    late = after_faults(5).after_fault(NOON + OPEN_FOR - timedelta(seconds=1))
    assert late.opened_at == NOON
    assert late.admit(NOON + OPEN_FOR)[1]


def test_the_probe_decides_and_one_that_never_ends_makes_room_for_another() -> None:
    later = NOON + OPEN_FOR
    probing, _ = after_faults(5).admit(later)

    assert probing.after_answer() == Breaker()
    opened = probing.after_fault(later)
    assert not opened.admit(later + OPEN_FOR - timedelta(seconds=1))[1]
    assert opened.admit(later + OPEN_FOR)[1]
    assert not probing.admit(later + PROBE_ENDS_AFTER - timedelta(seconds=1))[1]
    assert probing.admit(later + PROBE_ENDS_AFTER)[1]


def test_a_clock_that_is_set_back_does_not_keep_it_open() -> None:
    earlier = NOON - timedelta(hours=3)

    probing, admitted = after_faults(5).admit(earlier)
    assert admitted
    assert not probing.admit(earlier)[1]

    much_earlier = earlier - timedelta(hours=3)
    assert probing.admit(much_earlier)[1]
