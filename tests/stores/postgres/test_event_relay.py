"""The live feed of servers on one Postgres: a reader at one server gets the events of all."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.events.event_feed import ChangePublisher, Feed, Reader
from sandbox_sim.events.waits import Waiters
from sandbox_sim.ports import Unit
from sandbox_sim.records.events import EventFilter, EventType, NumberedEvent
from tests.sample_records import callback, message, transaction
from tests.stores.conftest import OpenPostgres, eventually
from tests.stores.postgres.postgres_servers import SHORT_LEASE, end_listening
from tests.units import unit_of

if TYPE_CHECKING:
    from sandbox_sim.stores.postgres.postgres_store import PostgresStore


class Server(NamedTuple):
    """The parts of a server that the live feed needs."""

    store: "PostgresStore"
    feed: Feed


def serve(store: "PostgresStore", clock: VirtualClock) -> Server:
    feed = Feed(clock, f"run{store._channel.server_pid}", store.relay)
    publisher = ChangePublisher(feed, Waiters(clock), clock)
    store.watch_changes(publisher.readers, publisher.publish)
    return Server(store, feed)


@pytest.fixture
def here(one: "PostgresStore", clock: VirtualClock) -> Server:
    return serve(one, clock)


@pytest.fixture
def there(other: "PostgresStore", clock: VirtualClock) -> Server:
    return serve(other, clock)


@pytest.fixture
def readers() -> Iterator[ExitStack]:
    with ExitStack() as readers:
        yield readers


async def listen(readers: ExitStack, at: Server, *others: Server) -> Reader:
    """Start a reader, and return it once the other servers know of it."""
    reader = readers.enter_context(at.feed.listening(EventFilter(), None, lambda: None))
    await eventually(lambda: all(each.store.relay.remote_readers for each in others))
    return reader


async def receive(reader: Reader, count: int) -> list[NumberedEvent]:
    """Wait for this many events, and return all that arrived."""
    received: list[NumberedEvent] = []
    while len(received) < count:
        received += await reader.take(10) or ()
    return received


async def test_the_readers_of_each_server_get_the_events_of_every_server_once(
    here: Server, there: Server, readers: ExitStack
) -> None:
    one, other = await listen(readers, here, there), await listen(readers, there, here)

    await unit_of(there.store).add_transaction(transaction())
    first = [await receive(one, 1), await receive(other, 1)]
    await unit_of(here.store).save_callback(callback())
    received = [(await receive(each, 1))[0] for each in (one, other)]

    for (event,) in first:
        assert (event.event.type, event.event.service_id) == (EventType.TRANSACTION, 55)
        assert event.id.partition("-")[2] == "1"
    assert {event.event.data for event in received} == {received[0].event.data}
    assert [event.id.partition("-")[2] for event in received] == ["2", "2"]
    assert await one.take(0) == await other.take(0) == []


async def test_long_and_equal_events_arrive_unchanged(
    here: Server, there: Server, readers: ExitStack
) -> None:
    """Postgres refuses a notification of 8000 bytes, and merges two equal ones into one."""
    reader = await listen(readers, here, there)
    messages = [message(f"M{number}", message="Ɛ" * 20_000) for number in range(20)]

    await unit_of(there.store).add_messages(messages)

    mine = readers.enter_context(there.feed.listening(EventFilter(), None, lambda: None))
    await unit_of(there.store).save_messages(messages)
    received, same = await receive(reader, 40), await receive(mine, 20)
    assert [each.event.data for each in received[20:]] == [each.event.data for each in same]


async def test_a_server_notes_changes_while_any_server_has_a_reader(
    here: Server,
    there: Server,
    open_postgres: OpenPostgres,
    clock: VirtualClock,
    readers: ExitStack,
) -> None:
    async def noted(unit: Unit) -> object:
        return unit.changes  # type: ignore[attr-defined]

    assert await there.store.run(noted) is None
    reader = await listen(readers, here, there)
    assert await there.store.run(noted) == []

    added = serve(await open_postgres(), clock)  # it asks the others whether they have readers
    await eventually(lambda: bool(added.store.relay.remote_readers))
    await unit_of(added.store).save_callback(callback())
    assert len(await receive(reader, 1)) == 1


async def test_the_last_event_of_a_server_that_stops_arrives(
    here: Server, there: Server, readers: ExitStack
) -> None:
    reader = await listen(readers, here, there)

    await unit_of(there.store).save_callback(callback())
    await there.store.close()

    assert len(await receive(reader, 1)) == 1


async def test_the_readers_of_a_stopped_server_are_forgotten(
    open_postgres: OpenPostgres, clock: VirtualClock, readers: ExitStack
) -> None:
    here, there = [serve(await open_postgres(lease=SHORT_LEASE), clock) for _ in range(2)]
    await listen(readers, here, there)

    await here.store.close()

    await eventually(lambda: not there.store.relay.remote_readers)


async def test_a_lost_connection_gives_every_reader_a_gap_event(
    here: Server, there: Server, url: str, readers: ExitStack
) -> None:
    one, other = await listen(readers, here, there), await listen(readers, there, here)

    await end_listening(there.store, url)

    for reader in (one, other):
        (gap,) = await receive(reader, 1)
        assert gap.event.type is EventType.GAP
    await unit_of(there.store).save_callback(callback())
    assert len(await receive(one, 1)) == 1
