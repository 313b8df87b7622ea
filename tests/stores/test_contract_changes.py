"""Every store publishes each committed change to the live feed once, in order, and nothing else."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.events.event_feed import ChangePublisher, Feed, Reader
from sandbox_sim.events.waits import Waiters
from sandbox_sim.ports import Store, Unit
from sandbox_sim.records.events import EventFilter
from sandbox_sim.records.overrides import Match, UserRuleKind
from tests.live_records import live_transaction
from tests.sample_records import callback, delivery, entry, message, posting, rule, transaction
from tests.units import unit_of


@pytest.fixture
def feed(clock: VirtualClock) -> Feed:
    return Feed(clock, "run")


@pytest.fixture
def telling(store: Store, feed: Feed, clock: VirtualClock) -> Store:
    publisher = ChangePublisher(feed, Waiters(clock), clock)
    store.watch_changes(publisher.readers, publisher.publish)
    return store


@pytest.fixture
def reader(feed: Feed) -> Iterator[Reader]:
    with feed.listening(EventFilter(), None, lambda: None) as reader:
        yield reader


async def heard(reader: Reader) -> list[tuple[str, int | None]]:
    """The type and the service of each event that the reader gets now."""
    return [(told.event.type.value, told.event.service_id) for told in await reader.take(0) or ()]


async def test_what_is_written_is_told(telling: Store, reader: Reader, clock: VirtualClock) -> None:
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

    await telling.run(work)

    assert await heard(reader) == [
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


async def test_what_is_taken_back_is_not(telling: Store, reader: Reader) -> None:
    """Changes that share a commit with the failed unit are still published once."""

    async def fails(unit: Unit) -> None:
        await unit.add_transaction(transaction("10000000001"))
        raise LookupError

    async def works(unit: Unit) -> None:
        await unit.save_callback(callback())

    done = await asyncio.gather(
        *(telling.run(work) for work in (works, fails, works)), return_exceptions=True
    )

    assert [type(each) for each in done] == [type(None), LookupError, type(None)]
    assert await heard(reader) == [("callback", 55)] * 2


async def test_it_is_told_when_it_can_be_read(telling: Store, store: Store, reader: Reader) -> None:
    async def look() -> object:
        await reader.take(60)
        return await unit_of(store).callback(55, "C1")

    looking = asyncio.create_task(look())
    await unit_of(telling).save_callback(callback())

    assert await looking == callback()


async def test_while_nobody_listens_nothing_is_noted(telling: Store, feed: Feed) -> None:
    async def noted(unit: Unit) -> object:
        await unit.save_callback(callback())
        return unit.noted  # type: ignore[attr-defined]

    assert await telling.run(noted) is None

    with feed.listening(EventFilter(), None, lambda: None):
        assert await telling.run(noted) is not None
