"""The live feed: what happened goes to whoever listens, and is kept for those who come back.

Whoever tells the feed never waits for a reader. Each reader has a queue of its own, and one that
does not read is hung up on: it comes back, says what it heard last, and hears the rest.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from sandbox_sim.domain.events import Event, EventType, Told, Wanted
from sandbox_sim.gateway.ports import Clock, Relay

# How many events are kept for those who come back.
KEPT_EVENTS: Final = 10_000
# Whoever lets so many wait, and takes none for so many seconds of real time, does not read.
MOST_WAITING: Final = 5_000
PATIENCE_S: Final = 5.0
# Whoever reads, and has so many waiting, never catches up.
TOO_MANY: Final = 200_000
# How many a reader takes at once; then others have their turn.
_AT_ONCE: Final = 200

log = logging.getLogger("sandbox_sim.events")


class Reader:
    """One who listens: a queue of what it wants to hear.

    hang_up: ends its connection if it does not take what was sent last.
    """

    def __init__(
        self,
        clock: Clock,
        wanted: Wanted,
        missed: Iterable[Told],
        most_waiting: int,
        hang_up: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._wanted = wanted
        self._queue = deque(told for told in missed if wanted.admits(told.event))
        self._most_waiting = most_waiting
        self._hang_up = hang_up
        self._wake = asyncio.Event()
        self._over = False
        # Since when it has been at what it took last; None while it is here for more.
        self._busy_since: float | None = clock.monotonic()

    @property
    def is_stuck(self) -> bool:
        """Whether it does not read, or too slowly for ever.

        That much came before it had its turn is no fault of it.
        """
        waiting = len(self._queue)
        if waiting >= TOO_MANY:
            return True
        if waiting < self._most_waiting or self._busy_since is None:
            return False
        return self._clock.monotonic() - self._busy_since >= PATIENCE_S

    def tell(self, told: Told) -> None:
        """Let it hear of this, if it wants to; never waits."""
        if self._wanted.admits(told.event):
            self._queue.append(told)
            self._wake.set()

    async def take(self, timeout_s: float) -> Sequence[Told] | None:
        """The next events; none after so much real time, and None when it is over."""
        self._busy_since = None
        until = self._clock.monotonic() + timeout_s
        while not (self._queue or self._over) and (left := until - self._clock.monotonic()) > 0:
            self._wake.clear()
            await self._clock.wait_at_most(self._wake, left)
        if self._over:
            return None
        self._busy_since = self._clock.monotonic()
        return [self._queue.popleft() for _ in range(min(len(self._queue), _AT_ONCE))]

    def end(self) -> None:
        """No more of it, whatever it still has to take."""
        self._over = True
        self._wake.set()
        self._hang_up()


class Feed:
    """Numbers events, keeps the newest, and tells the readers.

    run: tells this run of the server from others. relay: leads to the other servers, if there
    are any; what comes from there takes its place among what happened here.
    """

    def __init__(
        self,
        clock: Clock,
        run: str,
        relay: Relay | None = None,
        *,
        kept: int = KEPT_EVENTS,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._clock = clock
        self._run = run
        self._relay: Relay = relay or _NobodyElse()
        self._recording = False
        self._count = 0
        self._kept: deque[Told] = deque(maxlen=kept)
        self._most_waiting = most_waiting
        self._readers: set[Reader] = set()
        self._closed = False

    @property
    def recording(self) -> bool:
        """Whether to tell: from the first reader on, who may come back, here or elsewhere."""
        return self._recording or self._relay.wanted

    def publish(self, events: Sequence[Event]) -> None:
        """Tell of what happened at one go; never waits."""
        if self._relay.wanted:
            self._relay.tell(events)
        self._publish_here(events)

    def _publish_here(self, events: Iterable[Event]) -> None:
        for reader in [each for each in self._readers if each.is_stuck]:
            log.warning("a reader of the events did not keep up and was hung up on")
            self._readers.discard(reader)
            reader.end()
        for event in events:
            self._count += 1
            told = Told(self._id(self._count), event)
            self._kept.append(told)
            for reader in self._readers:
                reader.tell(told)

    @contextmanager
    def listening(
        self, wanted: Wanted, after: str | None, hang_up: Callable[[], None]
    ) -> Iterator[Reader]:
        """A reader, who hears what comes from now on, or what came after the event of this id."""
        self._record()
        missed = [] if after is None else self._since(after)
        reader = Reader(self._clock, wanted, missed, self._most_waiting, hang_up)
        self._readers.add(reader)
        if self._closed:
            reader.end()
        try:
            yield reader
        finally:
            self._readers.discard(reader)

    def close(self) -> None:
        """The server stops: it is over for all readers."""
        self._closed = True
        for reader in self._readers:
            reader.end()

    def _record(self) -> None:
        if not self._recording:
            self._relay.listen(self._publish_here)
        self._recording = True

    def _since(self, after: str) -> Sequence[Told]:
        """What came after the event of this id; after a gap, if that is not all of it."""
        before = self._id(self._count - len(self._kept))
        ids = [before, *(told.id for told in self._kept)]
        kept = list(self._kept)
        if after in ids:
            return kept[ids.index(after) :]
        return [Told(before, Event(EventType.GAP, None, lambda: {"after": after})), *kept]

    def _id(self, number: int) -> str:
        return f"{self._run}-{number}"


class _NobodyElse:
    """The relay of a server that is alone."""

    wanted = False

    def tell(self, events: Sequence[Event]) -> None:
        pass

    def listen(self, heard: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        return lambda: None
