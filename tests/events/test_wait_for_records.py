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


async def test_a_wait_ends_at_once_if_the_records_exist(waiters: Waiters, store: Searched) -> None:
    store.records = [record("A")]

    assert await wait(waiters, store) == WaitResult([record("A")], 1)
    assert not waiters.waiting


async def test_a_record_without_a_match_causes_no_search(waiters: Waiters, store: Searched) -> None:
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


async def test_a_moved_clock_causes_no_search(store: Searched) -> None:
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
async def test_a_record_is_shown_only_if_a_waiter_has_its_kind_service_and_inbox(
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
async def test_a_record_is_shown_only_if_the_field_of_a_waiter_may_match(
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


async def test_records_written_during_a_search_count(waiters: Waiters, store: Searched) -> None:
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


async def test_a_wait_that_times_out_returns_the_number_of_matches(
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
async def test_a_waiter_searches_again_after_a_reset_restore_or_gap(
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


async def test_records_deleted_by_a_reset_do_not_count(
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


async def test_a_cancelled_wait_leaves_no_waiter(waiters: Waiters, store: Searched) -> None:
    waiting = wait(waiters, store)
    await turns()
    assert waiters.waiting

    waiting.cancel()
    await turns()

    assert not waiters.waiting


class FakeRelay:
    """The connection to other servers; a test calls a receiver with their events."""

    remote_readers = ()

    def __init__(self) -> None:
        self.receivers: list[Callable[[Sequence[Event]], None]] = []

    def publish(self, events: Sequence[Event]) -> None:
        raise AssertionError("a waiter publishes nothing")

    def listen(self, receive: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        self.receivers.append(receive)
        return lambda: self.receivers.remove(receive)


async def test_a_waiter_gets_the_records_of_other_servers_while_it_waits(store: Searched) -> None:
    relay = FakeRelay()
    waiting = wait(Waiters(VirtualClock(), relay), store)
    await turns()

    store.records = [record("A")]
    (receive,) = relay.receivers
    receive(written(record("A")))

    assert (await waiting).matching == 1
    assert relay.receivers == []


async def test_a_waiter_beside_other_servers_searches_again_at_growing_intervals(
    clock: SteppedClock, store: Searched
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
