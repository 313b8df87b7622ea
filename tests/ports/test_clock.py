"""The settings of a clock: a distance from the machine's time, or frozen."""

from datetime import timedelta

from hypothesis import given, strategies as st

from sandbox_sim.ports.clock import ClockState
from tests.records.samples import SETTLED as MACHINE

SPANS = st.timedeltas(timedelta(days=-400), timedelta(days=400))

STATES = st.builds(ClockState, SPANS, st.none() | SPANS.map(lambda by: MACHINE + by))


@given(STATES, SPANS, SPANS)
def test_a_moved_clock_keeps_its_distance_from_the_time_of_the_machine(
    state: ClockState, by: timedelta, passed: timedelta
) -> None:
    moved = state.moved(by)

    assert moved.now(MACHINE) == state.now(MACHINE) + by
    assert (moved.frozen_at is None) is (state.frozen_at is None)
    if state.frozen_at is None:
        assert state.now(MACHINE + passed) == state.now(MACHINE) + passed


@given(STATES, SPANS)
def test_a_frozen_clock_keeps_its_time(state: ClockState, passed: timedelta) -> None:
    frozen = state.frozen(MACHINE)

    assert frozen.now(MACHINE + passed) == state.now(MACHINE)
    assert frozen.frozen(MACHINE + passed) == frozen


@given(STATES, SPANS, SPANS)
def test_a_resumed_clock_continues_from_its_frozen_time(
    state: ClockState, frozen_for: timedelta, passed: timedelta
) -> None:
    later = MACHINE + frozen_for

    resumed = state.frozen(MACHINE).resumed(later)

    assert resumed.now(later + passed) == state.now(MACHINE) + passed
    assert resumed.resumed(later) == resumed
