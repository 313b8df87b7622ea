"""A waiter searches once; from then on it looks only at the records that it receives."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field as field_of
from types import SimpleNamespace

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.events.waits import Shown, Subject, WaitCondition, Waiters, WaitResult
from sandbox_sim.records.events import Event, EventType
from tests.stepped_clock import SteppedClock
from tests.turns import turns

OURS = Subject(EventType.SMS, 55)


@dataclass
class Searched:
    """A store with these records; `times` counts the searches."""

    records: list[Shown] = field_of(default_factory=list)
    times: int = 0

    async def search(self) -> Sequence[Shown]:
        self.times += 1
        return [record for record in self.records if record["state"] == "done"]


@pytest.fixture
def store() -> Searched:
    return Searched()


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def waiters(clock: SteppedClock) -> Waiters:
    return Waiters(clock)


def record(record_id: str, state: str = "done") -> Shown:
    return {"id": record_id, "state": state}


def written(*records: Shown, subject: Subject = OURS) -> list[Event]:
    kind, service_id, inbox = subject
    return [Event(kind, service_id, lambda each=each: each, inbox) for each in records]  # type: ignore[misc]


def wait(
    waiters: Waiters,
    store: Searched,
    enough: int = 1,
    subject: Subject = OURS,
    field: tuple[str, object] | None = None,
    timeout_s: float = 60,
) -> "asyncio.Task[WaitResult]":
    wanted = WaitCondition(subject, "id", lambda shown: shown["state"] == "done", field, enough)
    return asyncio.create_task(waiters.wait_for(wanted, store.search, timeout_s))


async def test_what_is_there_is_found_at_once(waiters: Waiters, store: Searched) -> None:
    store.records = [record("A")]

    assert await wait(waiters, store) == WaitResult([record("A")], 1)
    assert not waiters.waiting


async def test_what_does_not_match_leads_to_no_search(waiters: Waiters, store: Searched) -> None:
    waiting = wait(waiters, store)
    await turns()
    for number in range(100):
        waiters.receive(written(record(str(number), "new")))
        await turns()
    assert store.times == 1

    store.records = [record("A")]
    waiters.receive(written(record("A")))

    assert await waiting == WaitResult([record("A")], 1)
    assert store.times == 2


async def test_a_clock_that_is_moved_leads_to_no_search(store: Searched) -> None:
    clock = VirtualClock()
    waiting = wait(Waiters(clock), store)
    await turns()

    clock.move_to(clock.now())
    await turns()

    assert store.times == 1
    assert not waiting.done()
    waiting.cancel()


@pytest.mark.parametrize(
    ("waits_for", "is_written", "receives"),
    [
        (Subject(EventType.SMS, 55), Subject(EventType.SMS, 56), False),
        (Subject(EventType.SMS, 55), Subject(EventType.CALLBACK, 55), False),
        (Subject(EventType.REQUEST, 55), Subject(EventType.REQUEST, None), False),
        (Subject(EventType.REQUEST, None), Subject(EventType.REQUEST, None), True),
        (Subject(EventType.SMS, None), Subject(EventType.SMS, 56), True),
        (Subject(EventType.INBOX, None, "a"), Subject(EventType.INBOX, None, "a"), True),
        (Subject(EventType.INBOX, None, "a"), Subject(EventType.INBOX, None, "b"), False),
    ],
)
async def test_nothing_is_shown_that_no_waiter_is_for(
    waiters: Waiters, store: Searched, waits_for: Subject, is_written: Subject, receives: bool
) -> None:
    waiting = wait(waiters, store, subject=waits_for)
    await turns()
    shown: list[None] = []

    def show() -> object:
        shown.append(None)
        return record("A", "new")

    waiters.receive([Event(is_written.type, is_written.service_id, show, is_written.inbox)])

    assert len(shown) == receives
    waiting.cancel()


@pytest.mark.parametrize("value", ["T1", 7, None, ["T1"], {"a": 1}, 1.5, True])
async def test_a_record_that_another_waits_for_is_not_shown(
    waiters: Waiters, store: Searched, value: object
) -> None:
    """A waiter receives each record that its field may match, for every type of value."""
    waiting = wait(waiters, store, field=("name", value))
    another = wait(waiters, Searched(), field=("name", "T2"))
    await turns()
    shown: list[str] = []

    def event(name: object) -> Event:
        def show() -> object:
            shown.append(str(name))
            return record("A", "new")

        return Event(EventType.SMS, 55, show, record=SimpleNamespace(name=name))

    hashable = not isinstance(value, list | dict)
    waiters.receive([event("T3"), event("T2"), event(value if hashable else "T1")])

    assert "T2" in shown
    indexed = isinstance(value, str | int)
    assert ("T3" in shown) == (not indexed)
    if hashable:
        assert str(value) in shown
    for each in (waiting, another):
        each.cancel()
    await turns()
    assert not waiters.waiting


async def test_a_record_that_ceases_to_match_does_not_count(
    waiters: Waiters, store: Searched
) -> None:
    waiting = wait(waiters, store, enough=2)
    await turns()

    waiters.receive(written(record("A"), record("A"), record("A", "failed"), record("B")))
    await turns()
    assert store.times == 1

    store.records = [record("C"), record("B")]
    waiters.receive(written(record("C")))
    assert (await waiting).records == [record("C"), record("B")]


async def test_what_is_written_during_the_search_counts(waiters: Waiters, store: Searched) -> None:
    go_on = asyncio.Event()
    found = [[record("A")], [record("B"), record("C")]]

    async def search() -> Sequence[Shown]:
        await go_on.wait()
        return found.pop(0)

    wanted = WaitCondition(OURS, "id", lambda shown: shown["state"] == "done", enough=2)
    waiting = asyncio.create_task(waiters.wait_for(wanted, search, 60))
    await turns()
    waiters.receive(written(record("A", "failed"), record("B"), record("C")))
    go_on.set()

    assert (await waiting).records == [record("B"), record("C")]


async def test_after_the_time_it_says_how_many_there_are(
    clock: SteppedClock, waiters: Waiters, store: Searched
) -> None:
    store.records = [record("A")]
    waiting = wait(waiters, store, enough=5, timeout_s=60)
    await turns()

    waiters.receive(written(record("B"), record("C", "new")))
    clock.advance(59)
    await turns()
    assert not waiting.done()
    clock.advance(1)

    assert await waiting == WaitResult(None, 2)
    assert store.times == 1


@pytest.mark.parametrize(
    ("event", "searches"),
    [
        (Event(EventType.RESET, 55, dict), 2),
        (Event(EventType.RESET, None, dict), 2),
        (Event(EventType.RESTORE, 55, dict), 2),
        (Event(EventType.GAP, None, dict), 2),
        (Event(EventType.RESET, 56, dict), 1),
    ],
)
async def test_it_searches_again_when_much_of_its_service_changed(
    waiters: Waiters, store: Searched, event: Event, searches: int
) -> None:
    waiting = wait(waiters, store)
    await turns()

    waiters.receive([event])
    await turns()

    assert store.times == searches
    store.records = [record("A")]
    waiters.receive(written(record("A")))
    assert (await waiting).matching == 1


async def test_what_a_reset_forgot_does_not_count(
    clock: SteppedClock, waiters: Waiters, store: Searched
) -> None:
    waiting = wait(waiters, store, enough=2, timeout_s=60)
    await turns()

    waiters.receive(written(record("A")))
    waiters.receive([Event(EventType.RESET, 55, dict)])
    await turns()
    waiters.receive(written(record("B")))
    clock.advance(60)

    assert await waiting == WaitResult(None, 1)


async def test_a_wait_that_is_cancelled_leaves_nothing(waiters: Waiters, store: Searched) -> None:
    waiting = wait(waiters, store)
    await turns()
    assert waiters.waiting

    waiting.cancel()
    await turns()

    assert not waiters.waiting


class FakeRelay:
    """The connection to other servers; a test calls `heard` with their events."""

    remote_readers = ()

    def __init__(self) -> None:
        self.heard: list[Callable[[Sequence[Event]], None]] = []

    def publish(self, events: Sequence[Event]) -> None:
        raise AssertionError("a waiter has nothing to tell")

    def listen(self, heard: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        self.heard.append(heard)
        return lambda: self.heard.remove(heard)


class TestWithOtherServers:
    async def test_it_receives_what_they_wrote_as_long_as_it_waits(self, store: Searched) -> None:
        relay = FakeRelay()
        waiters = Waiters(VirtualClock(), relay)
        waiting = wait(waiters, store)
        await turns()

        store.records = [record("A")]
        (heard,) = relay.heard
        heard(written(record("A")))

        assert (await waiting).matching == 1
        assert relay.heard == []

    async def test_it_searches_again_seldom_and_more_seldom(
        self, clock: SteppedClock, store: Searched
    ) -> None:
        waiting = wait(Waiters(clock, FakeRelay()), store, timeout_s=60)
        searched_at = []
        for half_seconds in range(120):
            before = store.times
            await turns()
            searched_at += [half_seconds / 2] * (store.times - before)
            clock.advance(0.5)

        assert (await waiting).records is None
        assert searched_at == [0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5]
