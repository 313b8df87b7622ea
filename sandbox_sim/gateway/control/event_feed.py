"""The live feed: what happened goes to whoever listens, and is kept for those who come back.

Whoever tells the feed never waits for a reader. Each reader has a queue of its own, and one that
does not read is hung up on: it comes back, says what it heard last, and hears the rest.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Final

from sandbox_sim.domain.control.events import (
    Event,
    EventFilter,
    EventText,
    EventType,
    NumberedEvent,
)
from sandbox_sim.gateway.ports import Clock, Relay

# How many events are kept for those who come back, and how many bytes of them.
KEPT_EVENTS: Final = 10_000
KEPT_BYTES: Final = 24 * 1024 * 1024
# How many bytes these and what waits for readers take together. Beyond that, the reader for which
# most waits is hung up on.
MOST_BYTES: Final = 40 * 1024 * 1024
# How many seconds of real time after the last reader has left events are kept for those who come
# back. Each costs as much as a reader would.
KEPT_FOR_S: Final = 300.0
# Whoever lets so many wait, and takes none for so many seconds of real time, does not read.
MOST_WAITING: Final = 5_000
PATIENCE_S: Final = 5.0
# Whoever reads, and has so many waiting, never catches up.
TOO_MANY: Final = 200_000
# How many a reader takes at once, and how many bytes, if one event is not more; then others have
# their turn.
_AT_ONCE: Final = 200
_BYTES_AT_ONCE: Final = 1024 * 1024

log = logging.getLogger("sandbox_sim.events")


class _Held:
    """An event in its place, and how many hold it: the feed, and readers that are to take it."""

    __slots__ = ("holders", "size", "told")

    def __init__(self, told: NumberedEvent) -> None:
        self.told = told
        self.size = told.event.size
        self.holders = 0


class _Memory:
    """How many bytes the events take that somebody holds; each counts once."""

    def __init__(self) -> None:
        self.bytes = 0

    def hold(self, held: _Held) -> None:
        """One more holds it."""
        if held.holders == 0:
            self.bytes += held.size
        held.holders += 1

    def release(self, held: _Held) -> None:
        """One holds it no longer."""
        held.holders -= 1
        if held.holders == 0:
            self.bytes -= held.size


class Reader:
    """One who listens: a queue of what it wants to hear.

    hang_up: ends its connection if it does not take what was sent last.
    waiting_bytes: of what it has still to take, and of what it took last.
    """

    def __init__(
        self,
        clock: Clock,
        memory: _Memory,
        wanted: EventFilter,
        missed: Iterable[_Held],
        most_waiting: int,
        hang_up: Callable[[], None],
    ) -> None:
        self.waiting_bytes = 0
        self._clock = clock
        self._memory = memory
        self._wanted = wanted
        self._queue: deque[_Held] = deque()
        # What it took last: it may still be on its way to the client.
        self._taken: list[_Held] = []
        self._most_waiting = most_waiting
        self._hang_up = hang_up
        self._wake = asyncio.Event()
        self._over = False
        # Since when it has been at what it took last; None while it is here for more.
        self._busy_since: float | None = clock.monotonic()
        for held in missed:
            self.tell(held)

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

    def tell(self, held: _Held) -> None:
        """Let it hear of this, if it wants to; never waits."""
        if self._wanted.matches(held.told.event):
            self._memory.hold(held)
            self.waiting_bytes += held.size
            self._queue.append(held)
            self._wake.set()

    async def take(self, timeout_s: float) -> Sequence[NumberedEvent] | None:
        """The next events; none after so much real time, and None when it is over."""
        self._busy_since = None
        self._release(self._taken)
        until = self._clock.monotonic() + timeout_s
        while not (self._queue or self._over) and (left := until - self._clock.monotonic()) > 0:
            self._wake.clear()
            await self._clock.wait_at_most(self._wake, left)
        if self._over:
            return None
        self._busy_since = self._clock.monotonic()
        size = 0
        while self._queue and len(self._taken) < _AT_ONCE:
            size += self._queue[0].size
            if self._taken and size > _BYTES_AT_ONCE:
                break
            self._taken.append(self._queue.popleft())
        return [held.told for held in self._taken]

    def end(self) -> None:
        """No more of it, whatever it still has to take."""
        self._over = True
        self._wake.set()
        self._hang_up()
        self.forget()

    def forget(self) -> None:
        """It holds nothing any more."""
        self._release(self._taken)
        self._release(self._queue)

    def _release(self, some: list[_Held] | deque[_Held]) -> None:
        for held in some:
            self.waiting_bytes -= held.size
            self._memory.release(held)
        some.clear()


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
        self._relay: Relay = relay or _NoRelay()
        self._recording = False
        self._stop_listening: Callable[[], None] = _nothing
        # When it ends to record, in real time, while there is no reader.
        self._until = 0.0
        self._count = 0
        self._kept: deque[_Held] = deque()
        self._most_kept = kept
        self._kept_bytes = 0
        self._memory = _Memory()
        self._most_waiting = most_waiting
        self._readers: set[Reader] = set()
        self._closed = False

    @property
    def recording(self) -> bool:
        """Whether to tell: while there is a reader here, or one may come back, or elsewhere."""
        if self._recording and not self._readers and self._clock.monotonic() >= self._until:
            self._stop_recording()
        return self._recording or self._relay.has_remote_readers

    def publish(self, events: Sequence[Event]) -> None:
        """Tell of what happened at one go; never waits."""
        if self._relay.has_remote_readers:
            self._relay.publish(events)
        self._publish_here(events)

    def _publish_here(self, events: Iterable[Event]) -> None:
        for reader in [each for each in self._readers if each.is_stuck]:
            self._hang_up_on(reader)
        for event in events:
            self._count += 1
            held = _Held(NumberedEvent(self._id(self._count), EventText.of(event)))
            self._keep(held)
            for reader in self._readers:
                reader.tell(held)
            while self._readers and self._memory.bytes > MOST_BYTES:
                self._hang_up_on(max(self._readers, key=attrgetter("waiting_bytes")))

    def _keep(self, held: _Held) -> None:
        """Keep one more, and fewer of the oldest where that is too much."""
        self._memory.hold(held)
        self._kept.append(held)
        self._kept_bytes += held.size
        while len(self._kept) > self._most_kept or self._kept_bytes > KEPT_BYTES:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        oldest = self._kept.popleft()
        self._kept_bytes -= oldest.size
        self._memory.release(oldest)

    def _hang_up_on(self, reader: Reader) -> None:
        log.warning("a reader of the events did not keep up and was hung up on")
        self._readers.discard(reader)
        reader.end()

    @contextmanager
    def listening(
        self, wanted: EventFilter, after: str | None, hang_up: Callable[[], None]
    ) -> Iterator[Reader]:
        """A reader, who hears what comes from now on, or what came after the event of this id."""
        self._record()
        missed = [] if after is None else self._since(after)
        reader = Reader(self._clock, self._memory, wanted, missed, self._most_waiting, hang_up)
        self._readers.add(reader)
        if self._closed:
            reader.end()
        try:
            yield reader
        finally:
            self._readers.discard(reader)
            reader.forget()
            self._until = self._clock.monotonic() + KEPT_FOR_S

    def close(self) -> None:
        """The server stops: it is over for all readers."""
        self._closed = True
        for reader in self._readers:
            reader.end()

    def _record(self) -> None:
        if not self._recording:
            self._stop_listening = self._relay.listen(self._publish_here)
        self._recording = True

    def _stop_recording(self) -> None:
        """Nobody came back. Who does so later is told of a gap, so one number is never given."""
        self._recording = False
        self._stop_listening()
        self._count += 1
        while self._kept:
            self._drop_oldest()

    def _since(self, after: str) -> Sequence[_Held]:
        """What came after the event of this id; after a gap, if that is not all of it."""
        before = self._id(self._count - len(self._kept))
        ids = [before, *(held.told.id for held in self._kept)]
        kept = list(self._kept)
        if after in ids:
            return kept[ids.index(after) :]
        gap = EventText.of(Event(EventType.GAP, None, lambda: {"after": after}))
        return [_Held(NumberedEvent(before, gap)), *kept]

    def _id(self, number: int) -> str:
        return f"{self._run}-{number}"


class _NoRelay:
    """The relay of a server that is alone."""

    has_remote_readers = False

    def publish(self, events: Sequence[Event]) -> None:
        pass

    def listen(self, heard: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        return _nothing


def _nothing() -> None:
    """There is nobody else to listen to."""
