"""The live feed of servers on one Postgres: a reader at one server gets the events of all."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.events.event_feed import ChangePublisher, Feed, Reader
from sandbox_sim.events.waits import Waiters
from sandbox_sim.ports import Unit
from sandbox_sim.records.events import EventFilter, EventType, NumberedEvent
from tests.sample_records import callback, message, transaction
from tests.stores.conftest import OpenPostgres, eventually
from tests.stores.postgres.postgres_servers import end_listening
from tests.units import unit_of

if TYPE_CHECKING:
    from sandbox_sim.stores.postgres.postgres_store import PostgresStore


class Server(NamedTuple):
    """The parts of a server that the live feed needs."""

    store: "PostgresStore"
    feed: Feed


Serve = Callable[["PostgresStore"], Server]


@pytest.fixture
def serve(clock: VirtualClock) -> Serve:
    def served(store: "PostgresStore") -> Server:
        feed = Feed(clock, f"run{store._channel.server_pid}", store.relay)
        publisher = ChangePublisher(feed, Waiters(clock), clock)
        store.watch_changes(publisher.readers, publisher.publish)
        return Server(store, feed)

    return served


@pytest.fixture
def here(one: "PostgresStore", serve: Serve) -> Server:
    return serve(one)


@pytest.fixture
def there(other: "PostgresStore", serve: Serve) -> Server:
    return serve(other)


@pytest.fixture
def readers() -> Iterator[ExitStack]:
    with ExitStack() as readers:
        yield readers


async def listen(readers: ExitStack, at: Server, *others: Server) -> Reader:
    """Start a reader, and return it once the other servers know of it."""
    reader = readers.enter_context(at.feed.listening(EventFilter(), None, lambda: None))
    await eventually(lambda: all(each.store.relay.remote_readers for each in others))
    return reader


async def hear(reader: Reader, count: int) -> list[NumberedEvent]:
    """Wait for this many events, and return all that came."""
    heard: list[NumberedEvent] = []
    while len(heard) < count:
        heard += await reader.take(10) or ()
    return heard


async def test_the_readers_of_each_server_hear_what_happens_at_any_of_them_once(
    here: Server, there: Server, readers: ExitStack
) -> None:
    one, other = await listen(readers, here, there), await listen(readers, there, here)

    await unit_of(there.store).add_transaction(transaction())
    first = [await hear(one, 1), await hear(other, 1)]
    await unit_of(here.store).save_callback(callback())
    heard = [(await hear(each, 1))[0] for each in (one, other)]

    for (told,) in first:
        assert (told.event.type, told.event.service_id) == (EventType.TRANSACTION, 55)
        assert told.id.partition("-")[2] == "1"
    assert {told.event.data for told in heard} == {heard[0].event.data}
    assert [told.id.partition("-")[2] for told in heard] == ["2", "2"]
    assert await one.take(0) == await other.take(0) == []


async def test_however_much_there_is_and_however_long(
    here: Server, there: Server, readers: ExitStack
) -> None:
    """Postgres refuses a notification of 8000 bytes, and merges two equal ones into one."""
    reader = await listen(readers, here, there)
    messages = [message(f"M{number}", message="Ɛ" * 20_000) for number in range(20)]

    await unit_of(there.store).add_messages(messages)

    mine = readers.enter_context(there.feed.listening(EventFilter(), None, lambda: None))
    await unit_of(there.store).save_messages(messages)
    heard, same = await hear(reader, 40), await hear(mine, 20)
    assert [told.event.data for told in heard[20:]] == [told.event.data for told in same]


async def test_changes_are_noted_while_somebody_listens_anywhere_and_a_new_server_asks_who(
    here: Server, there: Server, open_postgres: OpenPostgres, serve: Serve, readers: ExitStack
) -> None:
    async def noted(unit: Unit) -> object:
        return unit.changes  # type: ignore[attr-defined]

    assert await there.store.run(noted) is None
    reader = await listen(readers, here, there)
    assert await there.store.run(noted) == []

    newcomer = serve(await open_postgres())
    await eventually(lambda: bool(newcomer.store.relay.remote_readers))
    await unit_of(newcomer.store).save_callback(callback())
    assert len(await hear(reader, 1)) == 1


async def test_what_was_told_last_is_heard_though_the_server_stops(
    here: Server, there: Server, readers: ExitStack
) -> None:
    reader = await listen(readers, here, there)

    await unit_of(there.store).save_callback(callback())
    await there.store.close()

    assert len(await hear(reader, 1)) == 1


async def test_one_that_is_gone_is_told_of_nothing(
    open_postgres: OpenPostgres, serve: Serve, readers: ExitStack
) -> None:
    lease = timedelta(milliseconds=300)
    here, there = serve(await open_postgres(lease=lease)), serve(await open_postgres(lease=lease))
    await listen(readers, here, there)

    await here.store.close()

    await eventually(lambda: not there.store.relay.remote_readers)


async def test_after_a_break_there_is_a_gap_for_all(
    here: Server, there: Server, url: str, readers: ExitStack
) -> None:
    one, other = await listen(readers, here, there), await listen(readers, there, here)

    await end_listening(there.store, url)

    for reader in (one, other):
        (gap,) = await hear(reader, 1)
        assert gap.event.type is EventType.GAP
    await unit_of(there.store).save_callback(callback())
    assert len(await hear(one, 1)) == 1
