"""The rate limit of one client, a token bucket. Source: "limits", D10. Seconds are real ones."""

from dataclasses import dataclass
from typing import Final

# Whoever waits the seconds named may pass, though floats do not add up exactly.
ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class RateLimit:
    """`per_minute` requests on average, `burst` at once."""

    per_minute: float
    burst: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """How many requests are left, as of `at` seconds."""

    left: float
    at: float


def take(bucket: Bucket | None, limit: RateLimit, now: float) -> tuple[Bucket, float]:
    """Take one request; returns the bucket afterwards and the seconds to wait, 0 if it may pass."""
    if bucket is None:
        bucket = Bucket(limit.burst, now)
    per_second = limit.per_minute / 60
    left = min(limit.burst, bucket.left + (now - bucket.at) * per_second)
    if left > 1 - ROUNDING:
        return Bucket(max(left - 1, 0.0), now), 0.0
    return Bucket(left, now), (1 - left) / per_second
