"""The rate limit of one client: a number of requests a minute, and a number at once."""

import math
from itertools import accumulate

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.values.rate_limit import Bucket, RateLimit, take

LIMITS = st.builds(RateLimit, per_minute=st.integers(1, 1000), burst=st.integers(1, 50))

pytestmark = pytest.mark.decision("D10")


def passed(limit: RateLimit, moments: list[float]) -> list[float]:
    """The moments at which a request passes."""
    bucket: Bucket | None = None
    through = []
    for now in moments:
        bucket, wait = take(bucket, limit, now)
        if wait == 0:
            through.append(now)
    return through


def exhausted(limit: RateLimit, now: float) -> tuple[Bucket, float]:
    """A bucket right after its first refusal, and the wait that the refusal names."""
    bucket, wait = take(None, limit, now)
    while wait == 0:
        bucket, wait = take(bucket, limit, now)
    return bucket, wait


@pytest.mark.spec("limits")
@given(LIMITS, st.lists(st.floats(0, 90), min_size=1, max_size=120))
def test_requests_in_any_interval_stay_within_the_burst_and_the_rate(
    limit: RateLimit, pauses: list[float]
) -> None:
    through = passed(limit, list(accumulate(pauses)))

    for first, start in enumerate(through):
        for last in range(first, len(through)):
            most = limit.burst + (through[last] - start) * limit.per_minute / 60
            assert last - first + 1 <= most + 1e-6


@given(LIMITS)
def test_a_client_that_keeps_to_the_rate_is_never_refused(limit: RateLimit) -> None:
    apart = 60 / limit.per_minute * 1.001
    moments = [step * apart for step in range(200)]

    assert passed(limit, moments) == moments


@given(LIMITS, st.floats(0, 1e6), st.floats(0, 0.99))
def test_a_request_passes_after_the_named_wait_and_an_earlier_one_gets_the_rest(
    limit: RateLimit, now: float, part: float
) -> None:
    bucket, wait = exhausted(limit, now)

    assert wait > 0
    assert take(bucket, limit, now + math.ceil(wait))[1] == 0
    bucket, wait = exhausted(limit, 0)
    assert take(bucket, limit, wait * part)[1] == pytest.approx(wait * (1 - part))


@given(LIMITS, st.integers(1, 50))
def test_an_early_request_does_not_lengthen_the_wait(limit: RateLimit, often: int) -> None:
    bucket, first = exhausted(limit, 0)
    for _ in range(often):
        bucket, wait = take(bucket, limit, 0)

        assert wait == pytest.approx(first)


@given(LIMITS, st.floats(0, 1e6))
def test_exactly_the_burst_passes_at_once_also_after_a_long_rest(
    limit: RateLimit, now: float
) -> None:
    moments = [*[now] * (limit.burst + 5), *[now + 86_400] * (limit.burst + 5)]

    assert passed(limit, moments) == [*[now] * limit.burst, *[now + 86_400] * limit.burst]
    assert exhausted(RateLimit(per_minute=100, burst=20), 0)[1] == pytest.approx(0.6)
