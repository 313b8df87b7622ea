"""Every store publishes each committed change once, in order: to the live feed and to waits."""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import timedelta

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.control.journal import Journal
from sandbox_sim.control.record_search import (
    CALLBACKS,
    MESSAGES,
    REQUESTS,
    TRANSACTIONS,
    RecordKind,
    RecordSearch,
    inbox_of,
)
from sandbox_sim.events.event_feed import ChangePublisher, Feed, Reader
from sandbox_sim.events.waits import Waiters, WaitResult
from sandbox_sim.ports import Store, Unit
from sandbox_sim.records.events import EventFilter
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import SmsStatus
from sandbox_sim.records.overrides import Match, UserRuleKind
from tests.live_records import live_transaction
from tests.sample_records import NOW, callback, delivery, entry, message, posting, rule, transaction
from tests.stores.conftest import eventually
from tests.units import unit_of


@pytest.fixture
def feed(clock: VirtualClock) -> Feed:
    return Feed(clock, "run")


@pytest.fixture
def publishing(store: Store, feed: Feed, clock: VirtualClock) -> Store:
    publisher = ChangePublisher(feed, Waiters(clock), clock)
    store.watch_changes(publisher.readers, publisher.publish)
    return store


@pytest.fixture
def reader(feed: Feed) -> Iterator[Reader]:
    with feed.listening(EventFilter(), None, lambda: None) as reader:
        yield reader


async def received(reader: Reader) -> list[tuple[str, int | None]]:
    """The type and the service of each event that the reader gets now."""
    return [(each.event.type.value, each.event.service_id) for each in await reader.take(0) or ()]


async def test_each_committed_change_is_published_once_in_order(
    publishing: Store, reader: Reader, clock: VirtualClock
) -> None:
    async def work(unit: Unit) -> None:
        await unit.add_transaction(transaction())
        await unit.save_transaction(transaction(party="0244000002"))
        await unit.add_transaction(live_transaction("10000000002"))
        await unit.add_transaction(live_transaction("10000000003"))  # refused: T1 is in use
        await unit.save_transaction(live_transaction("10000000002"))
        await unit.save_callback(callback())
        await unit.add_messages([message("M1"), message("M2")])
        await unit.save_messages([message("M1")])
        await unit.add_entries([entry("R1"), entry("R2", service_id=None)])
        await unit.add_transfer(posting())
        await unit.add_inbox_message("orders", delivery())
        await unit.save_clock(clock.state.moved(timedelta(minutes=5)))
        await unit.save_clock(clock.state)
        await unit.save_user_rule(rule())
        await unit.delete_user_rule(rule(kind=UserRuleKind.FAULT, match=Match()))
        await unit.reset(56)
        assert await unit.transaction(55, "T1") == transaction(party="0244000002")

    await publishing.run(work)

    assert await received(reader) == [
        *[("transaction", 55)] * 4,
        ("callback", 55),
        *[("sms", 55)] * 3,
        *[("request", 55), ("request", None)],
        ("ledger", 55),
        ("inbox", None),
        ("clock", None),
        ("override", 55),
        ("fault", None),
        ("reset", 56),
    ]


async def test_a_failed_unit_publishes_no_changes(publishing: Store, reader: Reader) -> None:
    """Changes that share a commit with the failed unit are still published once."""

    async def fails(unit: Unit) -> None:
        await unit.add_transaction(transaction("10000000001"))
        raise LookupError

    async def works(unit: Unit) -> None:
        await unit.save_callback(callback())

    done = await asyncio.gather(
        *(publishing.run(work) for work in (works, fails, works)), return_exceptions=True
    )

    assert [type(each) for each in done] == [type(None), LookupError, type(None)]
    assert await received(reader) == [("callback", 55)] * 2


async def test_a_change_is_published_after_its_commit_and_only_while_a_reader_exists(
    publishing: Store, store: Store, feed: Feed
) -> None:
    async def noted(unit: Unit) -> object:
        await unit.save_callback(callback())
        return unit.changes  # type: ignore[attr-defined]

    assert await publishing.run(noted) is None

    with feed.listening(EventFilter(), None, lambda: None) as reader:

        async def look() -> object:
            await reader.take(60)
            return await unit_of(store).callback(55, "C2")

        looking = asyncio.create_task(look())
        await unit_of(publishing).save_callback(callback("C2"))
        assert await looking == callback("C2")
        assert await publishing.run(noted) is not None


class Server:
    """The parts of a server that a wait needs."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self.waiters = Waiters(clock)
        self.store = store
        publisher = ChangePublisher(Feed(clock, "run"), self.waiters, clock)
        store.watch_changes(publisher.readers, publisher.publish)
        self.journal = Journal(self.store, clock)
        self.records = RecordSearch(self.store, self.journal, self.waiters, clock)
        self.searches = 0

        searched = self.records._search_for_waiter

        async def counted(*args: object) -> object:
            found = await searched(*args)  # type: ignore[arg-type]
            self.searches += 1
            return found

        self.records._search_for_waiter = counted  # type: ignore[method-assign, assignment]

    async def wait(
        self, kind: RecordKind, match: Mapping[str, object], count: int = 1
    ) -> "asyncio.Task[WaitResult]":
        """Start a wait, and return its task after the first search."""
        waiting = asyncio.create_task(self.records.wait(kind, match, count, timeout_s=60))
        await eventually(lambda: self.searches == 1)
        return waiting


@pytest.fixture
def server(store: Store, clock: VirtualClock) -> Server:
    return Server(store, clock)


async def write(unit: Unit, suffix: str = "") -> None:
    """Write one record of each kind."""
    await unit.add_transaction(transaction(f"1{suffix}", transaction_id="T1" + suffix))
    await unit.save_callback(callback(f"C1{suffix}", transaction_id="T1" + suffix))
    await unit.add_messages([message(f"M1{suffix}", message="T1" + suffix)])
    await unit.add_entries([entry(f"R1{suffix}", transaction_id="T1" + suffix)])
    await unit.add_inbox_message("orders", delivery(f'{{"id": "T1{suffix}"}}', id=f"D1{suffix}"))


EVERY_KIND = [
    (TRANSACTIONS, "transaction_id"),
    (CALLBACKS, "transaction_id"),
    (MESSAGES, "message"),
    (REQUESTS, "transaction_id"),
    (inbox_of("orders"), "json.id"),
]


@pytest.mark.parametrize(("kind", "name"), EVERY_KIND, ids=lambda each: getattr(each, "type", ""))
async def test_a_new_matching_record_ends_a_wait(
    server: Server, kind: RecordKind, name: str
) -> None:
    waiting = await server.wait(kind, {name: "T1x"})
    await server.store.run(write)
    assert not waiting.done()

    await server.store.run(lambda unit: write(unit, "x"))

    records = (await waiting).records
    assert records is not None
    assert len(records) == 1
    assert server.searches == 2


async def test_a_wait_ends_when_saved_records_begin_to_match(server: Server) -> None:
    await unit_of(server.store).add_messages([message("M1"), message("M2")])
    waiting = await server.wait(MESSAGES, {"status": "SENT"}, count=2)

    for name in ("M1", "M2"):
        sent = message(name, status=SmsStatus.SENT, sent_at=NOW)
        await unit_of(server.store).save_messages([sent])

    assert len((await waiting).records or ()) == 2


async def test_a_wait_continues_after_a_reset(server: Server) -> None:
    await unit_of(server.store).save_callback(callback("C1"))
    waiting = await server.wait(CALLBACKS, {"service_id": 55}, count=2)

    await unit_of(server.store).reset(55)
    await eventually(lambda: server.searches == 2)
    await unit_of(server.store).save_callback(callback("C2"))
    assert not waiting.done()
    await unit_of(server.store).save_callback(callback("C3"))

    assert [each["id"] for each in (await waiting).records or ()] == ["C3", "C2"]


async def test_a_wait_ends_with_the_records_of_a_restored_snapshot(server: Server) -> None:
    await unit_of(server.store).save_callback(callback("C1"))
    await unit_of(server.store).save_snapshot("before", 55, NOW)
    await unit_of(server.store).reset(55)
    waiting = await server.wait(CALLBACKS, {"service_id": 55})

    await unit_of(server.store).restore_snapshot("before", NOW)

    assert [each["id"] for each in (await waiting).records or ()] == ["C1"]


async def test_a_new_wait_saves_only_the_requests_noted_before_it(server: Server) -> None:
    """The journal saves later requests in batches, as it does without a wait."""
    server.journal.note(entry("R1"))
    waiting = await server.wait(REQUESTS, {"service_id": 55}, count=3)
    assert len((await server.records.find(REQUESTS, {}, 10)).records) == 1

    for name in ("R2", "R3"):
        server.journal.note(entry(name))
    await asyncio.sleep(0)
    assert not waiting.done()
    saving = asyncio.create_task(server.journal.run_forever())

    assert [each["id"] for each in (await waiting).records or ()] == ["R3", "R2", "R1"]
    saving.cancel()


async def fill(unit: Unit) -> None:
    await unit.add_messages([message(f"M{n}", message=str(n)) for n in range(1_200)])


async def test_many_waits_that_begin_at_once_read_the_records_once(server: Server) -> None:
    """Beyond the newest records, the first wait reads alone, and all others share one read."""
    await server.store.run(fill)
    read: list[int] = []
    first_pages, all_have_begun = 0, asyncio.Event()
    page = server.records._page

    async def counted(kind: RecordKind, listing: Listing) -> object:
        nonlocal first_pages
        if listing.after is not None:
            await all_have_begun.wait()
        records = await page(kind, listing)
        read.append(len(records))
        first_pages += listing.after is None
        if first_pages == 20 + 1:  # that of each wait, and of the one that reads first
            all_have_begun.set()
        return records

    server.records._page = counted  # type: ignore[method-assign, assignment]
    waits = [
        asyncio.create_task(server.records.wait(MESSAGES, {"message": f"new {n}"}, 1, 60))
        for n in range(20)
    ]
    await eventually(lambda: server.searches == 20)

    assert sum(read) <= 20 * 500 + 2 * 1_200
    await unit_of(server.store).add_messages([message("N", message="new 19")])
    assert [each["processing_id"] for each in (await waits[-1]).records or ()] == ["N"]
    for each in waits:
        each.cancel()
    await asyncio.wait(waits)


async def test_a_cancelled_wait_that_reads_for_others_does_not_end_them(server: Server) -> None:
    await server.store.run(fill)
    reads, go_on = asyncio.Event(), asyncio.Event()
    read = server.records._read

    async def slow(*args: object) -> None:
        reads.set()
        await go_on.wait()
        await read(*args)  # type: ignore[arg-type]

    server.records._read = slow  # type: ignore[method-assign, assignment]
    leaves, stays = (
        asyncio.create_task(server.records.wait(MESSAGES, {"message": text}, 1, 60))
        for text in ("never", "0")
    )
    await reads.wait()
    leaves.cancel()
    go_on.set()

    assert (await stays).matching == 1
    assert not server.records._searches
