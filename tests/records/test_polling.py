"""When the gateway asks for the status of an open attempt."""

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.records.attempts import PollingSchedule, ask_after_hint
from tests.production.samples import NOON

pytestmark = pytest.mark.decision("D39")


SCHEDULE = PollingSchedule()


@pytest.mark.parametrize(
    ("polls", "seconds"), [(0, 5), (1, 10), (2, 20), (5, 160), (6, 300), (7, 300), (10**6, 300)]
)
def test_each_question_waits_twice_as_long_up_to_the_limit(polls: int, seconds: int) -> None:
    due = SCHEDULE.next_ask(NOON, polls, NOON, 0)

    assert due == NOON + timedelta(seconds=seconds)


def test_after_a_day_there_is_one_question_a_day() -> None:
    a_day_later = NOON + timedelta(seconds=86_400)

    assert SCHEDULE.next_ask(NOON, 300, a_day_later, 0) == a_day_later + timedelta(days=1)
    assert SCHEDULE.latest_ask(NOON, a_day_later) == a_day_later + timedelta(days=1.1)


@given(st.integers(0, 10**4), st.floats(0, 1, exclude_max=True))
def test_jitter_only_adds_and_at_most_a_tenth(polls: int, jitter: float) -> None:
    exact = SCHEDULE.next_ask(NOON, polls, NOON, 0) - NOON
    spread = SCHEDULE.next_ask(NOON, polls, NOON, jitter) - NOON

    assert exact <= spread <= exact * 1.1


@pytest.mark.parametrize(("poll_at_most_s", "seconds"), [(300, 3600), (3600, 3600), (7200, 7200)])
def test_a_network_is_left_alone_for_an_hour_or_as_long_as_the_setting_says(
    poll_at_most_s: int, seconds: int
) -> None:
    schedule = PollingSchedule(poll_at_most=timedelta(seconds=poll_at_most_s))

    assert schedule.longest_pause == timedelta(seconds=seconds)


def test_settings_may_be_fractions_and_large() -> None:
    quick = PollingSchedule(timedelta(seconds=0.25), timedelta(days=365 * 100))

    assert quick.interval(1) == timedelta(seconds=0.5)
    assert quick.interval(10**9) == timedelta(days=365 * 100)


def test_a_hint_asks_at_once_but_not_twice_in_a_second() -> None:
    assert ask_after_hint(None, NOON) == NOON
    assert ask_after_hint(NOON - timedelta(seconds=5), NOON) == NOON
    assert ask_after_hint(NOON, NOON) == NOON + timedelta(seconds=1)


def test_a_hint_after_the_clock_was_set_back_asks_at_once() -> None:
    assert ask_after_hint(NOON + timedelta(hours=3), NOON) == NOON
