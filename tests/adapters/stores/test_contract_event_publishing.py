"""Every store publishes each committed change to the live feed once, in order, and nothing else."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.domain.control.events import EventFilter
from sandbox_sim.domain.control.user_rules import Match, UserRuleKind
from sandbox_sim.gateway.control.event_feed import Feed, Reader
from sandbox_sim.gateway.control.event_publishing_store import EventPublishingStore, events_of_units
from sandbox_sim.gateway.ports import Store, Unit
from tests.records import callback, delivery, entry, message, posting, rule, transaction


@pytest.fixture
def feed(clock: VirtualClock) -> Feed:
    return Feed(clock, "run")


@pytest.fixture
def telling(store: Store, feed: Feed, clock: VirtualClock) -> EventPublishingStore:
    return EventPublishingStore(store, feed, clock)


@pytest.fixture
def reader(feed: Feed) -> Iterator[Reader]:
    with feed.listening(EventFilter(), None, lambda: None) as reader:
        yield reader


async def heard(reader: Reader) -> list[tuple[str, int | None]]:
    """The type and the service of each event that the reader gets now."""
    return [(told.event.type.value, told.event.service_id) for told in await reader.take(0) or ()]


async def test_what_is_written_is_told(
    telling: EventPublishingStore, reader: Reader, clock: VirtualClock
) -> None:
    async def work(unit: Unit) -> None:
        await unit.add_transaction(transaction())
        await unit.save_transaction(transaction(party="0244000002"))
        await unit.add_live_transaction(transaction())
        await unit.add_live_transaction(transaction("10000000002"))  # refused: T1 is in use
        await unit.save_live_transaction(transaction())
        await unit.save_callback(callback())
        await unit.add_messages([message("M1"), message("M2")])
        await unit.save_messages([message("M1")])
        await unit.add_entries([entry("R1"), entry("R2", service_id=None)])
        await unit.post(posting())
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


async def test_what_is_taken_back_is_not(telling: EventPublishingStore, reader: Reader) -> None:
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


async def test_it_is_told_when_it_can_be_read(
    telling: EventPublishingStore, store: Store, reader: Reader
) -> None:
    async def look() -> object:
        await reader.take(60)
        return await store.run(lambda unit: unit.callback(55, "C1"))

    looking = asyncio.create_task(look())
    await telling.run(lambda unit: unit.save_callback(callback()))

    assert await looking == callback()


async def test_before_anybody_listens_the_unit_is_the_store_s_own(
    telling: EventPublishingStore, store: Store, feed: Feed
) -> None:
    async def kind(unit: Unit) -> type[Unit]:
        return type(unit)

    own = await store.run(kind)
    assert await telling.run(kind) is own

    with feed.listening(EventFilter(), None, lambda: None):
        assert await telling.run(kind) is not own


# The methods that publish nothing: they read, or write what no reader or waiter waits for.
SILENT = {
    *("transaction", "transaction_by_network_id", "list_transactions", "card_page"),
    *("callback", "list_callbacks", "services_with_held_callbacks", "inbox_messages"),
    *("messages", "list_messages", "history", "balance", "postings", "ledger_page", "audit"),
    *("list_entries", "dropped_entries", "next_due", "user_rules", "user_rule"),
    *("snapshots", "clock", "add_card_page", "release_callbacks", "clear_inbox"),
    *("clear_entries", "add_job", "claim_due", "finish", "announce", "save_snapshot"),
    *("delete_snapshot", "reserve", "bring_forward", "jobs_after", "next_jobs"),
    *("live_transaction", "live_payment", "delete_live_transaction", "list_live_transactions"),
    *("add_attempt", "attempt", "save_attempt", "saved_request", "find_attempts", "attempts_of"),
    *("open_attempts", "doubtful_attempts", "enter", "book_balances", "book_legs"),
    *("book_page", "last_posted_at", "list_attempts"),
    *("save_hold", "hold", "open_holds", "exchanges_of", "add_exchanges"),
    *("add_raw_notification", "raw_notification", "save_raw_notification"),
    *("add_message_part", "save_message_part", "find_message_part", "message_parts"),
}


def test_each_method_of_a_unit_publishes_events_or_is_listed_as_silent(clock: VirtualClock) -> None:
    """A new method fails this test until it publishes events or is added to `SILENT`."""
    methods = {name for name in dir(Unit) if not name.startswith("_")}

    assert set(events_of_units(clock)) == methods - SILENT
    assert methods >= SILENT
