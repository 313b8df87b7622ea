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

KEPT, MOST_WAITING = 5, 3

ALL = EventFilter()


def event(text: str = "", service_id: int | None = 55) -> Event:
    return Event(EventType.SMS, service_id, lambda: text)


LARGE = event("x" * 10_000)


class Passed(VirtualClock):
    """A clock whose real time is set by the test."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def passed() -> Passed:
    return Passed()


@pytest.fixture
def feed(passed: Passed) -> Feed:
    return Feed(passed, "run", kept=KEPT, stuck_queue_length=MOST_WAITING)


class Listeners(ExitStack):
    """Adds readers to a feed, and notes which of them the feed disconnects."""

    def __init__(self, feed: Feed) -> None:
        super().__init__()
        self.feed = feed
        self.hung_up: list[str] = []

    def add(self, name: str = "", wanted: EventFilter = ALL, after: str | None = None) -> Reader:
        return self.enter_context(
            self.feed.listening(wanted, after, lambda: self.hung_up.append(name))
        )


@pytest.fixture
def listeners(feed: Feed) -> Iterator[Listeners]:
    with Listeners(feed) as listeners:
        yield listeners


async def heard(reader: Reader) -> Sequence[NumberedEvent]:
    """The events that the reader gets now."""
    told = await reader.take(timeout_s=0)
    assert told is not None, "it is over"
    return told


async def ids(reader: Reader) -> list[str]:
    return [each.id for each in await heard(reader)]


async def is_over(reader: Reader) -> bool:
    return await reader.take(timeout_s=0) is None


async def test_a_reader_hears_what_comes_from_now_on(feed: Feed, listeners: Listeners) -> None:
    feed.publish([event()])
    reader = listeners.add()

    feed.publish([event("b"), event("c")])
    feed.publish([event("d")])

    assert [(each.id, each.event.data) for each in await heard(reader)] == [
        ("run-2", '"b"'),
        ("run-3", '"c"'),
        ("run-4", '"d"'),
    ]
    assert await ids(reader) == []


async def test_an_event_costs_nothing_for_readers_of_other_services_and_one_of_none_reaches_all(
    feed: Feed, listeners: Listeners
) -> None:
    asked: list[int | None] = []

    class Noting(EventFilter):
        def matches(self, event: Event | EventText) -> bool:
            asked.append(self.service_id)
            return super().matches(event)

    services = (None, 55, 56, 57)
    readers = [listeners.add(wanted=Noting(service_id)) for service_id in services]
    feed.publish([event(service_id=55)])

    assert asked == [None, 55]
    feed.publish([Event(EventType.CLOCK, None, dict)])
    assert [(await ids(reader))[-1] for reader in readers] == ["run-2"] * 4


async def test_events_are_kept_while_somebody_reads_and_for_some_minutes_after(
    feed: Feed, listeners: Listeners, passed: Passed
) -> None:
    assert not feed.recording
    listeners.add()
    with Listeners(feed) as others:
        others.add()
    passed.seconds += 2 * KEPT_FOR_S
    assert feed.recording, "another one reads"

    listeners.close()
    passed.seconds += KEPT_FOR_S - 1
    assert feed.recording, "whoever listened may come back"
    feed.publish([event()])
    with Listeners(feed) as again:
        assert await ids(again.add(after="run-0")) == ["run-1"]

    passed.seconds += KEPT_FOR_S
    feed.publish([event()])
    assert not feed.recording
    assert feed._memory.bytes == 0
    (gap,) = await heard(listeners.add(after="run-1"))
    assert (gap.id, gap.event.type) == ("run-2", EventType.GAP)


class TestComingBack:
    @pytest.mark.parametrize(
        ("published", "after", "missed"),
        [
            (3, "run-1", ["run-2", "run-3"]),
            (3, "run-0", ["run-1", "run-2", "run-3"]),
            (3, "run-3", []),
            (0, "run-0", []),
            (7, "run-2", ["run-3", "run-4", "run-5", "run-6", "run-7"]),
            # A gap comes first where that is not all of it.
            *(
                (7, after, ["run-2", "run-3", "run-4", "run-5", "run-6", "run-7"])
                for after in ("run-1", "run-8", "run-", "earlier-4", "", "4")
            ),
        ],
    )
    async def test_one_hears_what_was_missed_or_that_it_is_not_all_of_it(
        self, feed: Feed, listeners: Listeners, published: int, after: str, missed: list[str]
    ) -> None:
        feed.publish([event() for _ in range(published)])

        told = await heard(listeners.add(after=after))

        assert [each.id for each in told] == missed
        gaps = [each.id for each in told if each.event.type is EventType.GAP]
        assert gaps == (["run-2"] if "run-2" in missed and published == 7 else [])

    async def test_much_comes_little_by_little(self, listeners: Listeners) -> None:
        listeners.feed = feed = Feed(VirtualClock(), "run", kept=450)
        feed.publish([event() for _ in range(450)])
        reader = listeners.add(after="run-0")

        assert [len(await heard(reader)) for _ in range(4)] == [200, 200, 50, 0]


class TestWhoDoesNotRead:
    """The feed disconnects a reader only if many events wait for it and it takes none for long."""

    async def test_is_hung_up_on_while_others_go_on(
        self, feed: Feed, listeners: Listeners, passed: Passed
    ) -> None:
        slow, fast = listeners.add("slow"), listeners.add("fast")
        passed.seconds = READER_STALLED_S
        for number in range(1, MOST_WAITING + 2):
            assert listeners.hung_up == []
            feed.publish([event()])
            assert await ids(fast) == [f"run-{number}"]

        assert listeners.hung_up == ["slow"]
        assert await is_over(slow)
        feed.publish([event()])
        assert await ids(fast) == [f"run-{MOST_WAITING + 2}"]

    async def test_is_not_who_only_waits_for_its_turn(
        self, feed: Feed, listeners: Listeners, passed: Passed
    ) -> None:
        reader = listeners.add()
        turn = asyncio.create_task(reader.take(timeout_s=READER_STALLED_S))
        await asyncio.sleep(0)

        passed.seconds = READER_STALLED_S / 2
        for _ in range(3 * MOST_WAITING):
            feed.publish([event()])
            passed.seconds += READER_STALLED_S

        told = await turn
        assert told is not None
        assert [each.id for each in told] == [f"run-{n + 1}" for n in range(3 * MOST_WAITING)]
        assert listeners.hung_up == []

    async def test_is_not_who_takes_little_by_little(
        self, feed: Feed, listeners: Listeners, passed: Passed
    ) -> None:
        reader = listeners.add()
        heard_of = 0
        for _ in range(4):
            feed.publish([event() for _ in range(300)])
            heard_of += len(await heard(reader))
            passed.seconds += 0.9 * READER_STALLED_S

        while some := await ids(reader):
            heard_of += len(some)
        assert heard_of == 4 * 300
        assert listeners.hung_up == []

    async def test_is_in_the_end_who_takes_less_than_comes(
        self, feed: Feed, listeners: Listeners, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gateway_feed, "MAX_QUEUE_LENGTH", 1000)
        reader = listeners.add("slow")
        for _ in range(10):
            feed.publish([event() for _ in range(300)])
            assert len(await heard(reader)) == 200
        assert listeners.hung_up == []

        feed.publish([event()])

        assert listeners.hung_up == ["slow"]
        assert await is_over(reader)

    async def test_is_not_who_has_much_to_catch_up_with_or_does_not_want_to_hear_it(
        self, feed: Feed, listeners: Listeners, passed: Passed
    ) -> None:
        feed.publish([event() for _ in range(KEPT)])
        reader = listeners.add(after="run-0")
        other = listeners.add(wanted=EventFilter(service_id=56))

        feed.publish([event()])
        feed.publish([event()])

        assert len(await heard(reader)) == KEPT + 2
        passed.seconds = READER_STALLED_S
        for _ in range(2 * MOST_WAITING):
            feed.publish([event(service_id=55)])
            await heard(reader)
        feed.publish([event(service_id=56)])
        assert await ids(other) == [f"run-{KEPT + 2 + 2 * MOST_WAITING + 1}"]
        assert listeners.hung_up == []


async def test_it_is_over_for_who_is_busy_who_waits_and_who_comes_after_the_end(
    feed: Feed, listeners: Listeners
) -> None:
    busy, waits = listeners.add("busy"), listeners.add("waits")
    waiting = asyncio.create_task(waits.take(timeout_s=60))
    await asyncio.sleep(0)

    feed.close()

    assert await waiting is None
    assert await is_over(busy)
    assert sorted(listeners.hung_up) == ["busy", "waits"]
    assert await is_over(listeners.add())


class TestBytes:
    """The feed and the queues of its readers have a limit in bytes, however large events are."""

    @pytest.fixture(autouse=True)
    def bounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Room for three large events, and for two more that wait for readers."""
        size = EventText.of(LARGE).size
        monkeypatch.setattr(gateway_feed, "KEPT_BYTES", 3 * size)
        monkeypatch.setattr(gateway_feed, "MAX_BYTES", 5 * size)

    @pytest.fixture
    def feed(self, passed: Passed) -> Feed:
        return Feed(passed, "run")

    async def test_so_many_bytes_are_kept_whoever_reads(
        self, feed: Feed, listeners: Listeners
    ) -> None:
        """One event that is larger than all is not kept."""
        keen = listeners.add("keen")
        for number in range(1, 101):
            feed.publish([LARGE])
            assert await ids(keen) == [f"run-{number}"]

        with Listeners(feed) as late:
            gap, *kept = await heard(late.add(after="run-1"))
        assert gap.event.type is EventType.GAP
        assert [told.id for told in kept] == ["run-98", "run-99", "run-100"]
        feed.publish([event("x" * 10 * len(LARGE.data))])
        with Listeners(feed) as late:
            (gap,) = await heard(late.add(after="run-0"))
        assert gap.event.type is EventType.GAP
        assert feed._memory.bytes == 0

    async def test_many_readers_share_what_they_wait_for_and_one_that_left_holds_nothing(
        self, feed: Feed, listeners: Listeners
    ) -> None:
        for number in range(50):
            listeners.add(str(number))
        feed.publish([LARGE] * 3)
        kept = feed._memory.bytes
        feed.publish([LARGE] * 2)
        assert listeners.hung_up == []
        listeners.close()

        assert kept == feed._memory.bytes == 3 * EventText.of(LARGE).size

    async def test_small_events_are_as_many_as_ever(self, feed: Feed, listeners: Listeners) -> None:
        feed.publish([event() for _ in range(50)])

        assert len(await heard(listeners.add(after="run-0"))) == 50

    async def test_the_record_itself_is_not_kept(self, feed: Feed) -> None:
        class Record:
            pass

        record = Record()
        gone = weakref.ref(record)
        feed.publish([Event(EventType.SMS, 55, partial(dict, id="M1"), record=record)])

        del record
        assert gone() is None

    async def test_of_those_that_do_not_it_is_the_one_for_which_most_waits(
        self, feed: Feed, listeners: Listeners
    ) -> None:
        slow, _, keen = (listeners.add(name) for name in ("slow", "slower", "keen"))
        for _ in range(4):
            feed.publish([LARGE])
            await heard(keen)
        assert len(await heard(slow)) == 4
        assert await heard(slow) == []
        assert listeners.hung_up == []

        for _ in range(2):
            feed.publish([LARGE])
            await heard(keen)

        assert listeners.hung_up == ["slower"]
        assert feed._memory.bytes <= gateway_feed.MAX_BYTES

    async def test_it_takes_not_many_bytes_at_once(
        self, feed: Feed, listeners: Listeners, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gateway_feed, "_BATCH_BYTES", 2 * EventText.of(LARGE).size)
        reader = listeners.add()
        feed.publish([LARGE] * 3)
        feed.publish([event("x" * 2 * len(LARGE.data))])

        assert [len(await heard(reader)) for _ in range(4)] == [2, 1, 1, 0]
