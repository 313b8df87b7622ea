"""The rate limit of one client: a token bucket, in seconds of real time. Source: "limits", D10."""

from dataclasses import dataclass
from typing import Final

# Floats do not add up exactly; a client that waited the reported time must pass.
_TOLERANCE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class RateLimit:
    """`per_minute` requests on average, and `burst` at once."""

    per_minute: float
    burst: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """The tokens that are left, as of `at` seconds."""

    tokens: float
    at: float


def take(bucket: Bucket | None, limit: RateLimit, now: float) -> tuple[Bucket, float]:
    """Take one token.

    Returns the new bucket and the seconds to wait; 0 where the request may pass.
    """
    if bucket is None:
        bucket = Bucket(limit.burst, now)
    per_second = limit.per_minute / 60
    tokens = min(limit.burst, bucket.tokens + (now - bucket.at) * per_second)
    if tokens > 1 - _TOLERANCE:
        return Bucket(max(tokens - 1, 0.0), now), 0.0
    return Bucket(tokens, now), (1 - tokens) / per_second
