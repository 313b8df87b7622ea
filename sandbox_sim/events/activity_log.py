"""Counts requests and attempts at callbacks, and limits how often a line is logged.

Up to `MOST_LINES` events a second each get a line. Above that all of them together get one line a
second with their counts, until a second has fewer. Requests that were rejected or have a warning
are counted apart from those that went well, so a flood of one does not hide the other.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Final

from sandbox_sim.ports import Clock
from sandbox_sim.records.callbacks import DeliveryState

_EVERY_S: Final = 1.0


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
        self._next = now + _EVERY_S
        count, self._count = self._count, 0
        return count


MOST_LINES: Final = 50

_SECOND: Final = 1.0


log = logging.getLogger("sandbox_sim.requests")
_callbacks_log = logging.getLogger("sandbox_sim.callbacks")


class _LineLimit:
    """Counts the events of each second of real time, and what had no line."""

    __slots__ = ("_ends", "_seen", "_summing_up", "unwritten")

    def __init__(self) -> None:
        self._ends = 0.0
        self._seen = 0
        self._summing_up = False
        self.unwritten: Counter[str] = Counter()

    def allows(self, what: str, now: float) -> bool:
        """Whether this event gets a line; else it is counted as `what`."""
        if now >= self._ends:
            follows = now < self._ends + _SECOND
            self._summing_up = follows and self._seen > MOST_LINES
            self._ends = now + _SECOND
            self._seen = 0
        self._seen += 1
        if self._summing_up or self._seen > MOST_LINES:
            self.unwritten[what] += 1
            return False
        return True


class ActivityLog:
    """Decides for each event whether it gets a line, and writes the lines that sum up many events.

    quiet: log what went well only at level debug (setting `quiet`).
    requests: how many requests this process has answered, by path and response code; a path
    outside of the interface counts as `other`. callback_attempts: how many attempts at callbacks
    it has recorded, by the state that followed.
    """

    def __init__(self, clock: Clock, *, quiet: bool = False) -> None:
        self.level_of_success = logging.DEBUG if quiet else logging.INFO
        self._clock = clock
        self._well = _LineLimit()
        self._refused = _LineLimit()
        # The connections without a line, by the receivers that refused one lately.
        self._refusals: Counter[str] = Counter()
        self._any = asyncio.Event()
        self.requests: Counter[tuple[str, str]] = Counter()
        self.callback_attempts: Counter[DeliveryState] = Counter()

    def allows_request(self, code: str, *, went_well: bool) -> bool:
        """Whether a request with this response code gets a line of its own."""
        limit = self._well if went_well else self._refused
        return limit.allows(code, self._clock.monotonic()) or self._leave_out()

    def allows_acknowledgement(self) -> bool:
        """Whether a callback that is acknowledged for the first time gets a line of its own."""
        return self._well.allows("", self._clock.monotonic()) or self._leave_out()

    def allows_refusal(self, receiver: str) -> bool:
        """Whether a connection that this receiver refused gets a line: only the first one does.

        One line a second counts the others. After a second without any, the next one is the first.
        """
        is_first = receiver not in self._refusals
        self._refusals[receiver] += not is_first
        self._any.set()
        return is_first

    def _leave_out(self) -> bool:
        self._any.set()
        return False

    async def run_forever(self) -> None:
        """Call `summarise` a second after each event without a line; never returns."""
        while True:
            await self._any.wait()
            await self._clock.pause(_SECOND)
            self.summarise()

    def summarise(self) -> None:
        """Write one line for all events that had none, and one for each receiver that refuses."""
        self._any.clear()
        self._summarise_refusals()
        requests = self._well.unwritten + self._refused.unwritten
        self._well.unwritten.clear()
        self._refused.unwritten.clear()
        if not requests:
            return
        facts = {code or "acknowledged": count for code, count in requests.items()}
        log.info(
            "without a line of their own, because there are more than %d a second: %s",
            *(MOST_LINES, ", ".join(_counted(requests))),
            extra={"facts": {"counts": facts}},
        )

    def _summarise_refusals(self) -> None:
        refusals = {receiver: count for receiver, count in self._refusals.items() if count}
        self._refusals = Counter(dict.fromkeys(refusals, 0))
        for receiver, count in refusals.items():
            text = "%d more callbacks to %s within a second: no connection"
            _callbacks_log.warning(text, count, receiver)
        if refusals:
            self._any.set()  # removes the receiver if it refuses no connection by then


def _counted(requests: "Counter[str]") -> Iterator[str]:
    for code, count in sorted(requests.items()):
        if code:
            yield f"{count} requests answered {code}"
    if acknowledged := requests[""]:
        yield f"{acknowledged} callbacks acknowledged"
