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


def test_four_faults_leave_the_breaker_closed_and_the_fifth_opens_it() -> None:
    assert after_faults(4).admit(NOON)[1]
    assert not after_faults(5).admit(NOON)[1]


def test_the_probe_closes_the_breaker_or_opens_it_again() -> None:
    later = NOON + OPEN_FOR
    probing, _ = after_faults(5).admit(later)

    assert probing.after_answer() == Breaker()
    opened = probing.after_fault(later)
    assert not opened.admit(later + OPEN_FOR - timedelta(seconds=1))[1]
    assert opened.admit(later + OPEN_FOR)[1]


def test_a_probe_that_never_ends_admits_another_after_a_minute() -> None:
    later = NOON + OPEN_FOR
    probing, _ = after_faults(5).admit(later)

    assert not probing.admit(later + PROBE_ENDS_AFTER - timedelta(seconds=1))[1]
    assert probing.admit(later + PROBE_ENDS_AFTER)[1]


def test_a_fault_of_an_earlier_submit_does_not_keep_the_breaker_open() -> None:
    late = NOON + OPEN_FOR - timedelta(seconds=1)
    breaker = after_faults(5).after_fault(late)

    assert breaker.opened_at == NOON
    assert breaker.admit(NOON + OPEN_FOR)[1]


def test_a_clock_that_is_set_back_does_not_keep_the_breaker_open() -> None:
    earlier = NOON - timedelta(hours=3)

    probing, admitted = after_faults(5).admit(earlier)
    assert admitted
    assert not probing.admit(earlier)[1]

    much_earlier = earlier - timedelta(hours=3)
    assert probing.admit(much_earlier)[1]
