"""Counts requests and attempts at callbacks, and limits how often a line is logged.

Up to `MAX_LINES_PER_S` events a second each get a line. Above that all of them together get one
line a second with their counts, until a second has fewer. Requests that were rejected or have a
warning are counted apart from the others, so a flood of one kind does not hide the other.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Final

from sandbox_sim.ports import Clock
from sandbox_sim.records.callbacks import DeliveryState

_INTERVAL_S: Final = 1.0


class LogThrottle:
    """Allows one line each second of real time, and counts the events in between."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next = clock.monotonic()
        self._count = 0

    def due(self, more: int = 1) -> int:
        """Count more events; returns how many to report now, or 0 to log nothing."""
        self._count += more
        now = self._clock.monotonic()
        if now < self._next:
            return 0
        self._next = now + _INTERVAL_S
        count, self._count = self._count, 0
        return count


MAX_LINES_PER_S: Final = 50


log = logging.getLogger("sandbox_sim.requests")
_callbacks_log = logging.getLogger("sandbox_sim.callbacks")


class _LineLimit:
    """Counts the events of each second of real time, and those without a line by category."""

    __slots__ = ("_interval_ends_at", "_is_summarising", "_seen", "unlogged")

    def __init__(self) -> None:
        self._interval_ends_at = 0.0
        self._seen = 0
        self._is_summarising = False
        self.unlogged: Counter[str] = Counter()

    def allows(self, category: str, now: float) -> bool:
        """Whether this event gets a line; else it is counted as `category`."""
        if now >= self._interval_ends_at:
            is_next_interval = now < self._interval_ends_at + _INTERVAL_S
            self._is_summarising = is_next_interval and self._seen > MAX_LINES_PER_S
            self._interval_ends_at = now + _INTERVAL_S
            self._seen = 0
        self._seen += 1
        if self._is_summarising or self._seen > MAX_LINES_PER_S:
            self.unlogged[category] += 1
            return False
        return True


class ActivityLog:
    """Decides for each event whether it gets a line, and writes the lines that sum up many events.

    quiet: log successes only at level debug (setting `quiet`).
    requests: how many requests this process has answered, by path and response code; a path
    outside of the interface counts as `other`. callback_attempts: how many attempts at callbacks
    it has recorded, by the state that followed.
    """

    def __init__(self, clock: Clock, *, quiet: bool = False) -> None:
        self.level_of_success = logging.DEBUG if quiet else logging.INFO
        self._clock = clock
        self._successes = _LineLimit()
        self._rejections = _LineLimit()
        # How many refused connections had no line, by the receivers that refused one lately.
        self._refusals: Counter[str] = Counter()
        self._wake = asyncio.Event()
        self.requests: Counter[tuple[str, str]] = Counter()
        self.callback_attempts: Counter[DeliveryState] = Counter()

    def allows_request(self, code: str, *, succeeded: bool) -> bool:
        """Whether a request with this response code gets a line of its own."""
        limit = self._successes if succeeded else self._rejections
        return limit.allows(code, self._clock.monotonic()) or self._schedule_summary()

    def allows_acknowledgement(self) -> bool:
        """Whether a callback that is acknowledged for the first time gets a line of its own."""
        return self._successes.allows("", self._clock.monotonic()) or self._schedule_summary()

    def allows_refusal(self, receiver: str) -> bool:
        """Whether a connection that this receiver refused gets a line: only the first one does.

        One line a second counts the others. After a second without any, the next one is the first.
        """
        is_first = receiver not in self._refusals
        self._refusals[receiver] += not is_first
        self._wake.set()
        return is_first

    def _schedule_summary(self) -> bool:
        self._wake.set()
        return False

    async def run_forever(self) -> None:
        """Call `summarise` a second after each event without a line; never returns."""
        while True:
            await self._wake.wait()
            await self._clock.pause(_INTERVAL_S)
            self.summarise()

    def summarise(self) -> None:
        """Write one line for all events that had none, and one for each receiver that refuses."""
        self._wake.clear()
        self._summarise_refusals()
        requests = self._successes.unlogged + self._rejections.unlogged
        self._successes.unlogged.clear()
        self._rejections.unlogged.clear()
        if not requests:
            return
        facts = {code or "acknowledged": count for code, count in requests.items()}
        log.info(
            "without a line of their own, because there are more than %d a second: %s",
            *(MAX_LINES_PER_S, ", ".join(_describe_counts(requests))),
            extra={"facts": {"counts": facts}},
        )

    def _summarise_refusals(self) -> None:
        refusals = {receiver: count for receiver, count in self._refusals.items() if count}
        self._refusals = Counter(dict.fromkeys(refusals, 0))
        for receiver, count in refusals.items():
            text = "%d more callbacks to %s within a second: no connection"
            _callbacks_log.warning(text, count, receiver)
        if refusals:
            self._wake.set()  # removes the receiver if it refuses no connection by then


def _describe_counts(requests: "Counter[str]") -> Iterator[str]:
    for code, count in sorted(requests.items()):
        if code:
            yield f"{count} requests answered {code}"
    if acknowledged := requests[""]:
        yield f"{acknowledged} callbacks acknowledged"
