"""The store deletes what clients cannot ask for any more; pending records stay, however old."""

from collections.abc import AsyncIterator
from functools import partial
from operator import methodcaller
from pathlib import Path

import pytest

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.adapters.stores.sql import journal, sql_unit
from sandbox_sim.adapters.stores.sqlite.sqlite_store import SqliteStore
from sandbox_sim.domain.callbacks import inbox
from sandbox_sim.domain.callbacks.delivery_state import DeliveryState
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.payments.transactions import Status
from tests.adapters.stores.writes import prepared
from tests.records import (
    NOW,
    SERVICE,
    after,
    callback,
    checkout,
    delivery,
    entry,
    every,
    transaction,
)
from tests.sqlite_files import count, opened, rows

LIMIT = 3
OTHER = 56
decided = partial(transaction, status=Status.SUCCESSFUL, decided_at=NOW)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def store(
    tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SqliteStore]:
    """A store that keeps three records of each kind that has a limit."""
    monkeypatch.setattr(sql_unit, "KEPT_CALLBACKS", LIMIT)
    monkeypatch.setattr(inbox, "KEPT_INBOX_MESSAGES", LIMIT)
    monkeypatch.setattr(journal, "KEPT_REQUESTS", LIMIT)
    async with opened(tmp_path / "state.sqlite3", clock) as store:
        yield store


@pytest.mark.decision("D15")
class TestTransactions:
    @pytest.mark.parametrize(
        ("minutes", "kept"), [(0, 20), (14.99, 20), (15, 0), (16, 0), (100_000, 0)]
    )
    async def test_decided_ones_go_after_their_fifteen_minutes(
        self, store: SqliteStore, clock: VirtualClock, minutes: float, kept: int
    ) -> None:
        for number in range(20):
            made = decided(f"{number:011d}", transaction_id=f"T{number % 7}")
            await store.run(methodcaller("add_transaction", made))

        clock.move_to(after(minutes=minutes))
        await store.run(methodcaller("next_due"))

        assert await count(store, "transactions") == kept

    @pytest.mark.parametrize(("by_hand", "kept"), [(False, 1), (True, 0)])
    @pytest.mark.parametrize("hours", [0.25, 1, 25, 10_000])
    async def test_one_that_ends_by_itself_stays_until_it_does(
        self, store: SqliteStore, clock: VirtualClock, hours: float, by_hand: bool, kept: int
    ) -> None:
        """Its callback must still be sent."""
        made = transaction(by_hand=by_hand)
        await store.run(lambda unit: unit.add_transaction(made))
        await store.run(lambda unit: unit.add_transaction(decided("10000000002")))

        clock.move_to(after(hours=hours))
        await store.run(methodcaller("next_due"))

        assert await count(store, "transactions") == kept

    async def test_those_that_are_live_stay_beside_them(
        self, store: SqliteStore, clock: VirtualClock
    ) -> None:
        for minute in range(30):
            made = decided(f"{minute:011d}", initiated_at=after(minutes=minute))
            await store.run(methodcaller("add_transaction", made))

        clock.move_to(after(minutes=30))
        await store.run(methodcaller("next_due"))

        left = await rows(store, "SELECT network_transaction_id FROM transactions ORDER BY 1")
        assert [int(network_id) for (network_id,) in left] == list(range(16, 30))

    async def test_an_old_pending_one_is_in_nobodys_way(
        self, store: SqliteStore, clock: VirtualClock
    ) -> None:
        await store.run(lambda unit: unit.add_transaction(transaction("10000000000")))
        for number in range(1, 10):
            made = decided(f"{number:011d}", initiated_at=after(hours=number))
            await store.run(methodcaller("add_transaction", made))

        clock.move_to(after(hours=9, minutes=5))
        await store.run(methodcaller("next_due"))

        left = await rows(store, "SELECT network_transaction_id FROM transactions ORDER BY number")
        assert left == [("10000000000",), ("00000000009",)]


@pytest.mark.decision("D20")
@pytest.mark.parametrize(("minutes", "kept"), [(0, 1), (14.99, 1), (15, 0), (100, 0)])
async def test_card_pages_go_when_they_expire(
    store: SqliteStore, clock: VirtualClock, minutes: float, kept: int
) -> None:
    await store.run(lambda unit: unit.add_card_page(checkout()))

    clock.move_to(after(minutes=minutes))
    await store.run(methodcaller("next_due"))

    assert await count(store, "checkouts") == kept


class TestCallbacks:
    """The store applies the limit once a minute, not with each callback."""

    @staticmethod
    async def save(
        store: SqliteStore, name: str, state: DeliveryState, service_id: int = SERVICE
    ) -> None:
        made = callback(name, state=state, service_id=service_id)
        await store.run(methodcaller("save_callback", made))

    @staticmethod
    async def kept(store: SqliteStore, service_id: int = SERVICE) -> list[str]:
        return [
            each.id for each in await store.run(methodcaller("list_callbacks", every(service_id)))
        ]

    @pytest.mark.parametrize("finished", [0, 1, LIMIT - 1, LIMIT, LIMIT + 1, 10])
    async def test_the_newest_finished_ones_of_each_service_stay(
        self, store: SqliteStore, clock: VirtualClock, finished: int
    ) -> None:
        names = [f"C{number}" for number in range(finished)]
        for name in names:
            await self.save(store, name, DeliveryState.DELIVERED)
            await self.save(store, f"other {name}", DeliveryState.FAILED, OTHER)
        clock.move_to(after(minutes=1))
        await store.run(methodcaller("next_due"))

        newest = names[::-1][:LIMIT]
        assert await self.kept(store) == newest
        assert await self.kept(store, OTHER) == [f"other {name}" for name in newest]

    async def test_pending_ones_stay_however_many_and_however_old(
        self, store: SqliteStore, clock: VirtualClock
    ) -> None:
        waiting = [f"P{number}" for number in range(2 * LIMIT)]
        for number, name in enumerate(waiting):
            state = DeliveryState.RETRYING if number % 2 else DeliveryState.PENDING
            await self.save(store, name, state)
        for number in range(2 * LIMIT):
            await self.save(store, f"C{number}", DeliveryState.FAILED)
        clock.move_to(after(days=400))
        await store.run(methodcaller("next_due"))

        assert await self.kept(store) == ["C5", "C4", "C3", *reversed(waiting)]


async def test_an_inbox_keeps_its_newest_messages(store: SqliteStore) -> None:
    for number in range(10):
        await store.run(methodcaller("add_inbox_message", "orders", delivery(str(number))))
        await store.run(methodcaller("add_inbox_message", f"other {number}", delivery()))

    messages = await store.run(lambda unit: unit.inbox_messages("orders", Listing()))

    assert [message.body for message in messages] == ["9", "8", "7"]
    assert await count(store, "inbox") == LIMIT + 10


async def test_the_journal_keeps_the_newest_of_each_service_and_counts_what_it_dropped(
    store: SqliteStore, clock: VirtualClock
) -> None:
    for number in range(5):
        made = [entry(f"{service} {number}", service_id=service) for service in (55, 56, None)]
        await store.run(methodcaller("add_entries", made[: 3 if number else 2]))
    for minutes in (1, 2, 3):
        clock.move_to(after(minutes=minutes))
        await store.run(methodcaller("next_due"))

    found = await store.run(methodcaller("list_entries", Listing(SERVICE, limit=100)))
    assert [each.id for each in found] == ["55 4", "55 3", "55 2"]
    assert await count(store, "requests") == 3 * LIMIT
    dropped = [
        await store.run(methodcaller("dropped_entries", service)) for service in (55, 56, 57, None)
    ]
    assert dropped == [2, 2, 0, 5]


async def test_what_was_posted_and_sent_is_never_forgotten(
    store: SqliteStore, clock: VirtualClock
) -> None:
    """The SMS history and the postings stay for ever."""
    await store.run(prepared)
    clock.move_to(after(days=4000))
    await store.run(methodcaller("next_due"))

    assert await count(store, "messages") == 3
    assert await count(store, "postings") == 1
    assert await count(store, "jobs") == 3
    assert await count(store, "checkouts") == 0
