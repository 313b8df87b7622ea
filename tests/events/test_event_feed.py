"""The live feed: a ring of past events, and a queue for each reader."""

import asyncio
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.events import event_feed as gateway_feed
from sandbox_sim.events.event_feed import KEPT_FOR_S, READER_STALLED_S, Feed, Reader
from sandbox_sim.records.events import Event, EventFilter, EventText, EventType, NumberedEvent
from tests.stepped_clock import SteppedClock

KEPT, MOST_WAITING = 5, 3

ALL = EventFilter()


def event(text: str = "", service_id: int | None = 55) -> Event:
    return Event(EventType.SMS, service_id, lambda: text)


LARGE = event("x" * 10_000)


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def feed(clock: SteppedClock) -> Feed:
    return Feed(clock, "run", kept=KEPT, stuck_queue_length=MOST_WAITING)


class Listeners(ExitStack):
    """Adds readers to a feed, and notes the names of those that the feed disconnects."""

    def __init__(self, feed: Feed) -> None:
        super().__init__()
        self.feed = feed
        self.disconnected: list[str] = []

    def add(self, name: str = "", wanted: EventFilter = ALL, after: str | None = None) -> Reader:
        return self.enter_context(
            self.feed.listening(wanted, after, lambda: self.disconnected.append(name))
        )


@pytest.fixture
def listeners(feed: Feed) -> Iterator[Listeners]:
    with Listeners(feed) as listeners:
        yield listeners


async def received(reader: Reader) -> Sequence[NumberedEvent]:
    """The events that the reader gets now."""
    events = await reader.take(timeout_s=0)
    assert events is not None, "the feed ended the reader"
    return events


async def ids(reader: Reader) -> list[str]:
    return [each.id for each in await received(reader)]


async def is_over(reader: Reader) -> bool:
    return await reader.take(timeout_s=0) is None


async def test_a_reader_gets_the_events_after_its_start(feed: Feed, listeners: Listeners) -> None:
    feed.publish([event()])
    reader = listeners.add()

    feed.publish([event("b"), event("c")])
    feed.publish([event("d")])

    assert [(each.id, each.event.data) for each in await received(reader)] == [
        ("run-2", '"b"'),
        ("run-3", '"c"'),
        ("run-4", '"d"'),
    ]
    assert await ids(reader) == []


async def test_a_reader_gets_the_events_of_its_service_and_those_without_a_service(
    feed: Feed, listeners: Listeners
) -> None:
    """The feed does not call the filters of other services."""
    called: list[int | None] = []

    class Noting(EventFilter):
        def matches(self, event: Event | EventText) -> bool:
            called.append(self.service_id)
            return super().matches(event)

    services = (None, 55, 56, 57)
    readers = [listeners.add(wanted=Noting(service_id)) for service_id in services]
    feed.publish([event(service_id=55)])

    assert called == [None, 55]
    feed.publish([Event(EventType.CLOCK, None, dict)])
    assert [(await ids(reader))[-1] for reader in readers] == ["run-2"] * 4


async def test_events_are_kept_while_a_reader_exists_and_some_minutes_longer(
    feed: Feed, listeners: Listeners, clock: SteppedClock
) -> None:
    assert not feed.recording
    listeners.add()
    with Listeners(feed) as others:
        others.add()
    clock.advance(2 * KEPT_FOR_S)
    assert feed.recording, "one reader is left"

    listeners.close()
    clock.advance(KEPT_FOR_S - 1)
    assert feed.recording, "the last reader may reconnect"
    feed.publish([event()])
    with Listeners(feed) as again:
        assert await ids(again.add(after="run-0")) == ["run-1"]

    clock.advance(KEPT_FOR_S)
    feed.publish([event()])
    assert not feed.recording
    assert feed._memory.bytes == 0
    (gap,) = await received(listeners.add(after="run-1"))
    assert (gap.id, gap.event.type) == ("run-2", EventType.GAP)


class TestReconnectingReader:
    @pytest.mark.parametrize(
        ("published", "after", "missed"),
        [
            (3, "run-1", ["run-2", "run-3"]),
            (3, "run-0", ["run-1", "run-2", "run-3"]),
            (3, "run-3", []),
            (0, "run-0", []),
            (7, "run-2", ["run-3", "run-4", "run-5", "run-6", "run-7"]),
            # A gap comes first if some missed events are not kept.
            *(
                (7, after, ["run-2", "run-3", "run-4", "run-5", "run-6", "run-7"])
                for after in ("run-1", "run-8", "run-", "earlier-4", "", "4")
            ),
        ],
    )
    async def test_a_reconnecting_reader_gets_the_missed_events_or_a_gap(
        self, feed: Feed, listeners: Listeners, published: int, after: str, missed: list[str]
    ) -> None:
        feed.publish([event() for _ in range(published)])

        events = await received(listeners.add(after=after))

        assert [each.id for each in events] == missed
        gaps = [each.id for each in events if each.event.type is EventType.GAP]
        assert gaps == (["run-2"] if "run-2" in missed and published == 7 else [])

    async def test_many_missed_events_come_in_batches(self, listeners: Listeners) -> None:
        listeners.feed = feed = Feed(VirtualClock(), "run", kept=450)
        feed.publish([event() for _ in range(450)])
        reader = listeners.add(after="run-0")

        assert [len(await received(reader)) for _ in range(4)] == [200, 200, 50, 0]


class TestSlowReader:
    """The feed disconnects a reader if many events wait and it takes none for a long time."""

    async def test_a_reader_that_takes_nothing_is_disconnected_and_others_continue(
        self, feed: Feed, listeners: Listeners, clock: SteppedClock
    ) -> None:
        slow, fast = listeners.add("slow"), listeners.add("fast")
        clock.advance(READER_STALLED_S)
        for number in range(1, MOST_WAITING + 2):
            assert listeners.disconnected == []
            feed.publish([event()])
            assert await ids(fast) == [f"run-{number}"]

        assert listeners.disconnected == ["slow"]
        assert await is_over(slow)
        feed.publish([event()])
        assert await ids(fast) == [f"run-{MOST_WAITING + 2}"]

    async def test_a_reader_that_waits_for_its_turn_stays_connected(
        self, feed: Feed, listeners: Listeners, clock: SteppedClock
    ) -> None:
        reader = listeners.add()
        turn = asyncio.create_task(reader.take(timeout_s=READER_STALLED_S))
        await asyncio.sleep(0)

        clock.advance(READER_STALLED_S / 2)
        for _ in range(3 * MOST_WAITING):
            feed.publish([event()])
            clock.advance(READER_STALLED_S)

        events = await turn
        assert events is not None
        assert [each.id for each in events] == [f"run-{n + 1}" for n in range(3 * MOST_WAITING)]
        assert listeners.disconnected == []

    async def test_a_reader_that_takes_events_in_batches_stays_connected(
        self, feed: Feed, listeners: Listeners, clock: SteppedClock
    ) -> None:
        reader = listeners.add()
        count = 0
        for _ in range(4):
            feed.publish([event() for _ in range(300)])
            count += len(await received(reader))
            clock.advance(0.9 * READER_STALLED_S)

        while some := await ids(reader):
            count += len(some)
        assert count == 4 * 300
        assert listeners.disconnected == []

    async def test_a_reader_that_takes_fewer_events_than_arrive_is_disconnected(
        self, feed: Feed, listeners: Listeners, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gateway_feed, "MAX_QUEUE_LENGTH", 1000)
        reader = listeners.add("slow")
        for _ in range(10):
            feed.publish([event() for _ in range(300)])
            assert len(await received(reader)) == 200
        assert listeners.disconnected == []

        feed.publish([event()])

        assert listeners.disconnected == ["slow"]
        assert await is_over(reader)

    async def test_a_reader_with_missed_or_unwanted_events_stays_connected(
        self, feed: Feed, listeners: Listeners, clock: SteppedClock
    ) -> None:
        feed.publish([event() for _ in range(KEPT)])
        reader = listeners.add(after="run-0")
        other = listeners.add(wanted=EventFilter(service_id=56))

        feed.publish([event()])
        feed.publish([event()])

        assert len(await received(reader)) == KEPT + 2
        clock.advance(READER_STALLED_S)
        for _ in range(2 * MOST_WAITING):
            feed.publish([event(service_id=55)])
            await received(reader)
        feed.publish([event(service_id=56)])
        assert await ids(other) == [f"run-{KEPT + 2 + 2 * MOST_WAITING + 1}"]
        assert listeners.disconnected == []


async def test_a_closed_feed_ends_busy_waiting_and_new_readers(
    feed: Feed, listeners: Listeners
) -> None:
    busy, waits = listeners.add("busy"), listeners.add("waits")
    waiting = asyncio.create_task(waits.take(timeout_s=60))
    await asyncio.sleep(0)

    feed.close()

    assert await waiting is None
    assert await is_over(busy)
    assert sorted(listeners.disconnected) == ["busy", "waits"]
    assert await is_over(listeners.add())


class TestLimitInBytes:
    """The feed and the queues of its readers have a limit in bytes."""

    @pytest.fixture(autouse=True)
    def bounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Room for three large events, and for two more that wait for readers."""
        size = EventText.of(LARGE).size
        monkeypatch.setattr(gateway_feed, "KEPT_BYTES", 3 * size)
        monkeypatch.setattr(gateway_feed, "MAX_BYTES", 5 * size)

    @pytest.fixture
    def feed(self, clock: SteppedClock) -> Feed:
        return Feed(clock, "run")

    async def test_the_feed_keeps_the_newest_events_up_to_the_limit(
        self, feed: Feed, listeners: Listeners
    ) -> None:
        """An event that is larger than the limit is not kept."""
        keen = listeners.add("keen")
        for number in range(1, 101):
            feed.publish([LARGE])
            assert await ids(keen) == [f"run-{number}"]

        with Listeners(feed) as late:
            gap, *kept = await received(late.add(after="run-1"))
        assert gap.event.type is EventType.GAP
        assert [events.id for events in kept] == ["run-98", "run-99", "run-100"]
        feed.publish([event("x" * 10 * len(LARGE.data))])
        with Listeners(feed) as late:
            (gap,) = await received(late.add(after="run-0"))
        assert gap.event.type is EventType.GAP
        assert feed._memory.bytes == 0

    async def test_readers_share_waiting_events_and_release_them_when_they_leave(
        self, feed: Feed, listeners: Listeners
    ) -> None:
        for number in range(50):
            listeners.add(str(number))
        feed.publish([LARGE] * 3)
        kept = feed._memory.bytes
        feed.publish([LARGE] * 2)
        assert listeners.disconnected == []
        listeners.close()

        assert kept == feed._memory.bytes == 3 * EventText.of(LARGE).size

    async def test_many_small_events_fit_the_limit(self, feed: Feed, listeners: Listeners) -> None:
        feed.publish([event() for _ in range(50)])

        assert len(await received(listeners.add(after="run-0"))) == 50

    async def test_the_feed_does_not_keep_the_record_of_an_event(self, feed: Feed) -> None:
        class Record:
            pass

        record = Record()
        gone = weakref.ref(record)
        feed.publish([Event(EventType.SMS, 55, partial(dict, id="M1"), record=record)])

        del record
        assert gone() is None

    async def test_above_the_limit_the_reader_with_the_most_waiting_bytes_is_disconnected(
        self, feed: Feed, listeners: Listeners
    ) -> None:
        slow, _, keen = (listeners.add(name) for name in ("slow", "slower", "keen"))
        for _ in range(4):
            feed.publish([LARGE])
            await received(keen)
        assert len(await received(slow)) == 4
        assert await received(slow) == []
        assert listeners.disconnected == []

        for _ in range(2):
            feed.publish([LARGE])
            await received(keen)

        assert listeners.disconnected == ["slower"]
        assert feed._memory.bytes <= gateway_feed.MAX_BYTES

    async def test_a_reader_takes_a_limited_number_of_bytes_at_once(
        self, feed: Feed, listeners: Listeners, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gateway_feed, "_BATCH_BYTES", 2 * EventText.of(LARGE).size)
        reader = listeners.add()
        feed.publish([LARGE] * 3)
        feed.publish([event("x" * 2 * len(LARGE.data))])

        assert [len(await received(reader)) for _ in range(4)] == [2, 1, 1, 0]
