"""The rate limit of one client: a token bucket, in seconds of real time. Source: "limits", D10."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

# The maximum number of buckets. A bucket that was not used for long is full, so it can be dropped.
_MAX_BUCKETS: Final = 10_000

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


class Buckets:
    """A bucket for each key, with one limit. Times are seconds of real time."""

    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def wait_time(self, key: str, now: float) -> float:
        """How long the key has to wait for a token; takes none."""
        return take(self._buckets.get(key), self._limit, now)[1]

    def take(self, key: str, now: float) -> float:
        """Take a token of the key if it has one; return how long to wait if it has none."""
        self._buckets[key], wait = take(self._buckets.get(key), self._limit, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.popitem(last=False)
        return wait
