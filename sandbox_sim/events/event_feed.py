"""The live feed: publishes what units wrote, sends events to readers, and keeps the newest.

Publishing never waits for a reader. Each reader has a queue of its own. A reader that does not read
is disconnected: it can connect again with the id of the last event that it got, and gets the events
since then.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, dataclass
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from sandbox_sim.events.waits import Waiters
from sandbox_sim.ports import Clock, Relay, clock as clock_view
from sandbox_sim.ports.clock import ClockState
from sandbox_sim.records import (
    callbacks,
    inbox,
    journal,
    ledger,
    messages,
    overrides,
    snapshots,
    transactions,
)
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.events import (
    Event,
    EventFilter,
    EventText,
    EventType,
    NumberedEvent,
    StoredChange,
)
from sandbox_sim.records.inbox import InboxMessage
from sandbox_sim.records.overrides import DeletedRule, UserRule

# How many events are kept for readers that come back, and how many bytes of them.
KEPT_EVENTS: Final = 10_000

KEPT_BYTES: Final = 24 * 1024 * 1024

# How many bytes the kept events and the queues of the readers take together. Beyond that, the
# reader with the largest queue is disconnected.
MAX_BYTES: Final = 40 * 1024 * 1024

# Real time, in seconds, in which events are still kept after the last reader has left. An event
# that is kept costs a payment as much as a reader does.
KEPT_FOR_S: Final = 300.0

# A reader that has this many events in its queue, and took none for this many seconds of real time,
# is stuck.
STUCK_QUEUE_LENGTH: Final = 5_000

READER_STALLED_S: Final = 5.0

# A reader with this many events in its queue is stuck even if it reads: it is too slow.
MAX_QUEUE_LENGTH: Final = 200_000

# How many events a reader takes at once, and how many bytes if that is more than one event; then
# other tasks run.
_BATCH_EVENTS: Final = 200

_BATCH_BYTES: Final = 1024 * 1024


log = logging.getLogger("sandbox_sim.events")


class _SharedEvent:
    """A numbered event, and how many places keep it: the feed, and queues of readers."""

    __slots__ = ("numbered", "references", "size")

    def __init__(self, numbered: NumberedEvent) -> None:
        self.numbered = numbered
        self.size = numbered.event.size
        self.references = 0


class _MemoryUse:
    """Counts the bytes of all events that are kept anywhere; each event counts once."""

    def __init__(self) -> None:
        self.bytes = 0

    def add(self, event: _SharedEvent) -> None:
        """Count one more place that keeps the event."""
        if event.references == 0:
            self.bytes += event.size
        event.references += 1

    def remove(self, event: _SharedEvent) -> None:
        """Count one place less that keeps the event."""
        event.references -= 1
        if event.references == 0:
            self.bytes -= event.size


@dataclass(eq=False, repr=False)
class Reader:
    """One reader of the feed, with a queue of the events that it wants.

    disconnect: ends its connection if it does not take what was sent last.
    service_id: of the events that it wants; None for all services.
    waiting_bytes: the size of its queue, and of the events that it took last.
    """

    clock: Clock
    memory: _MemoryUse
    wanted: EventFilter
    missed: InitVar[Iterable[_SharedEvent]]
    stuck_queue_length: int
    disconnect: Callable[[], None]

    def __post_init__(self, missed: Iterable[_SharedEvent]) -> None:
        self.service_id = self.wanted.service_id
        self.waiting_bytes = 0
        self._queue: deque[_SharedEvent] = deque()
        # The events that it took last: they may not have reached the client yet.
        self._in_flight: list[_SharedEvent] = []
        self._wake = asyncio.Event()
        self._ended = False
        # Since when it sends the events that it took last; None while it waits in `take`.
        self._busy_since: float | None = self.clock.monotonic()
        for event in missed:
            self.offer(event)

    @property
    def is_stuck(self) -> bool:
        """Whether it does not read, or reads too slowly to catch up.

        A long queue alone does not mean that: the events may have come before it could run.
        """
        waiting = len(self._queue)
        if waiting >= MAX_QUEUE_LENGTH:
            return True
        if waiting < self.stuck_queue_length or self._busy_since is None:
            return False
        return self.clock.monotonic() - self._busy_since >= READER_STALLED_S

    def offer(self, event: _SharedEvent) -> None:
        """Queue the event if the reader wants it; never waits."""
        if self.wanted.matches(event.numbered.event):
            self.memory.add(event)
            self.waiting_bytes += event.size
            self._queue.append(event)
            self._wake.set()

    async def take(self, timeout_s: float) -> Sequence[NumberedEvent] | None:
        """The next events; empty after `timeout_s` of real time without one, None after `end`."""
        self._busy_since = None
        self._remove(self._in_flight)
        deadline = self.clock.monotonic() + timeout_s
        while (
            not (self._queue or self._ended)
            and (remaining_s := deadline - self.clock.monotonic()) > 0
        ):
            self._wake.clear()
            await self.clock.wait_at_most(self._wake, remaining_s)
        if self._ended:
            return None
        self._busy_since = self.clock.monotonic()
        size = 0
        while self._queue and len(self._in_flight) < _BATCH_EVENTS:
            size += self._queue[0].size
            if self._in_flight and size > _BATCH_BYTES:
                break
            self._in_flight.append(self._queue.popleft())
        return [event.numbered for event in self._in_flight]

    def end(self) -> None:
        """Disconnect it and drop its queue; `take` returns None from now on."""
        self._ended = True
        self._wake.set()
        self.disconnect()
        self.clear()

    def clear(self) -> None:
        """Drop all events that it keeps."""
        self._remove(self._in_flight)
        self._remove(self._queue)

    def _remove(self, events: list[_SharedEvent] | deque[_SharedEvent]) -> None:
        for event in events:
            self.waiting_bytes -= event.size
            self.memory.remove(event)
        events.clear()


class Feed:
    """Numbers events, keeps the newest, and offers them to the readers.

    run: an id of this run of the server, part of the id of each event.
    relay: exchanges events with other servers, if there are any; their events get numbers here in
    the order in which they arrive. closed: whether the server stops.
    """

    def __init__(
        self,
        clock: Clock,
        run: str,
        relay: Relay | None = None,
        *,
        kept: int = KEPT_EVENTS,
        stuck_queue_length: int = STUCK_QUEUE_LENGTH,
    ) -> None:
        self._clock = clock
        self._run = run
        self._relay: Relay = relay or _NoRelay()
        # What ends recording; empty while nothing is recorded.
        self.recording: list[Callable[[], None]] = []
        # When recording ends if there is no reader, in real time.
        self._records_until = 0.0
        self._count = 0
        self._kept: deque[_SharedEvent] = deque()
        self._max_kept = kept
        self._kept_bytes = 0
        self._memory = _MemoryUse()
        self._stuck_queue_length = stuck_queue_length
        self._readers: set[Reader] = set()
        # The readers by the service that they want, None for those of all.
        self._readers_by_service: Mapping[int | None, Sequence[Reader]] = {}
        self.closed = False

    @property
    def demand(self) -> Sequence[Collection[object]]:
        """Two collections, of which at least one has a member while events are to be published."""
        return self.recording, self._relay.remote_readers

    def publish(self, events: Sequence[Event]) -> None:
        """Send events of one unit of work to all readers, here and elsewhere; never waits."""
        if self._relay.remote_readers:
            self._relay.publish(events)
        if self.recording and not self._readers and self._clock.monotonic() >= self._records_until:
            self._stop_recording()
        else:
            self._publish_here(events)

    def _publish_here(self, events: Sequence[Event]) -> None:
        for service_id in {event.service_id for event in events}:
            for reader in [each for each in self._readers_for(service_id) if each.is_stuck]:
                self._disconnect(reader)
        for event in events:
            self._count += 1
            shared = _SharedEvent(NumberedEvent(self._id(self._count), EventText.of(event)))
            self._keep(shared)
            for reader in self._readers_for(event.service_id):
                reader.offer(shared)
            while self._readers and self._memory.bytes > MAX_BYTES:
                self._disconnect(max(self._readers, key=attrgetter("waiting_bytes")))

    def _readers_for(self, service_id: int | None) -> Iterable[Reader]:
        """The readers that may want an event of this service; it is not offered to others."""
        if service_id is None:
            return self._readers
        return chain(
            self._readers_by_service.get(None, ()), self._readers_by_service.get(service_id, ())
        )

    def _index_readers(self) -> None:
        groups: dict[int | None, list[Reader]] = {}
        for reader in self._readers:
            groups.setdefault(reader.service_id, []).append(reader)
        self._readers_by_service = groups

    def _keep(self, event: _SharedEvent) -> None:
        """Keep one more event, and drop the oldest ones beyond the limits."""
        self._memory.add(event)
        self._kept.append(event)
        self._kept_bytes += event.size
        while len(self._kept) > self._max_kept or self._kept_bytes > KEPT_BYTES:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        oldest = self._kept.popleft()
        self._kept_bytes -= oldest.size
        self._memory.remove(oldest)

    def _disconnect(self, reader: Reader) -> None:
        log.warning("a reader of the events did not keep up and was disconnected")
        self._readers.discard(reader)
        self._index_readers()
        reader.end()

    @contextmanager
    def listening(
        self, wanted: EventFilter, after: str | None, disconnect: Callable[[], None]
    ) -> Iterator[Reader]:
        """A reader for as long as the context lasts.

        after: the id of an event. The reader gets the events since then, and first a gap if some
        of them were dropped; None: the events from now on.
        """
        self._start_recording()
        missed = [] if after is None else self._events_after(after)
        reader = Reader(
            self._clock, self._memory, wanted, missed, self._stuck_queue_length, disconnect
        )
        self._readers.add(reader)
        self._index_readers()
        if self.closed:
            reader.end()
        try:
            yield reader
        finally:
            self._readers.discard(reader)
            self._index_readers()
            reader.clear()
            self._records_until = self._clock.monotonic() + KEPT_FOR_S

    def close(self) -> None:
        """End all readers, and each later one at once: the server stops."""
        self.closed = True
        for reader in self._readers:
            reader.end()

    def _start_recording(self) -> None:
        if not self.recording:
            self.recording.append(self._relay.listen(self._publish_here))

    def _stop_recording(self) -> None:
        """Drop all events. Skips a number, so that a reader that comes back later sees the gap."""
        self.recording.pop()()
        self._count += 1
        while self._kept:
            self._drop_oldest()

    def _events_after(self, after: str) -> Sequence[_SharedEvent]:
        """The kept events after the one with this id; all of them after a gap if it is unknown."""
        before = self._id(self._count - len(self._kept))
        ids = [before, *(event.numbered.id for event in self._kept)]
        kept = list(self._kept)
        if after in ids:
            return kept[ids.index(after) :]
        gap = EventText.of(Event(EventType.GAP, None, lambda: {"after": after}))
        return [_SharedEvent(NumberedEvent(before, gap)), *kept]

    def _id(self, number: int) -> str:
        return f"{self._run}-{number}"


class _NoRelay:
    """The relay of a server that shares its store with no other one."""

    remote_readers = ()

    def publish(self, events: Sequence[Event]) -> None:
        pass

    def listen(self, on_events: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        return lambda: None


# How each record is shown that belongs to a service.
_VIEWS: Final[Mapping[EventType, Callable[[Any], object]]] = {
    EventType.CALLBACK: callbacks.shown,
    EventType.SMS: messages.shown,
    EventType.REQUEST: journal.shown,
    EventType.LEDGER: ledger.shown,
    EventType.RESTORE: snapshots.shown,
}


class ChangePublisher:
    """Publishes the changes of a store while the feed has a reader or a request waits."""

    def __init__(self, feed: Feed, waiters: Waiters, clock: Clock) -> None:
        self._feed = feed
        self._waiters = waiters
        self._clock = clock

    @property
    def readers(self) -> Sequence[Collection[object]]:
        """Units note what they write while one of these collections has a member."""
        return self._waiters.waiting, *self._feed.demand

    def publish(self, changes: Sequence[StoredChange]) -> None:
        """Send what a committed unit wrote to the waiters and the feed."""
        events = [event for change in changes for event in self._events(*change)]
        if events and self._waiters.waiting:
            self._waiters.receive(events)
        if events and any(self._feed.demand):
            self._feed.publish(events)

    def _events(self, kind: EventType, subject: Any) -> Iterable[Event]:
        """The event of a change; nothing for a write that readers must not see."""
        show: Callable[[], object]
        match subject:
            case transactions.TransactionRecord():
                show = partial(transactions.shown, subject, self._clock.now())
                yield Event(kind, subject.service_id, show, record=subject)
            case ClockState():
                # `advance` saves its target before the clock gets there.
                if subject == self._clock.state:
                    yield Event(kind, None, partial(dict, clock_view.shown(self._clock)))
            case Behaviour():
                given = subject.shown_given
                yield Event(kind, None, lambda: {"given": given})
            case (str() as name, InboxMessage() as message):
                # `readyz` writes to the inbox without a name, to try the store.
                if name:
                    show = lambda: {"name": name, **inbox.shown(message)}  # noqa: E731
                    yield Event(kind, None, show, inbox=name, record=message)
            case UserRule():
                yield Event(kind, subject.match.service_id, partial(overrides.shown, subject))
            case DeletedRule():
                deleted = {"id": subject.id, "deleted": True}
                yield Event(kind, subject.service_id, lambda: deleted)
            case int() | None:
                yield Event(kind, subject, lambda: {"service_id": subject})
            case _:
                show = partial(_VIEWS[kind], subject)
                yield Event(kind, subject.service_id, show, record=subject)
