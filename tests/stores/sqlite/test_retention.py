"""The store deletes what clients cannot ask for and what is too much; what is open stays."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.records.transactions import Status
from sandbox_sim.stores.sqlite import sqlite_store
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from tests.sample_records import (
    NOW,
    after,
    checkout,
    transaction,
)
from tests.sqlite_files import count, opened
from tests.stores.writes import prepared
from tests.units import unit_of

LIMIT = 3

decided = partial(transaction, status=Status.SUCCESSFUL, decided_at=NOW)


@pytest.fixture
async def store(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[SqliteStore]:
    """A store that keeps three transactions."""
    async with opened(tmp_path / "state.sqlite3", clock, keep_transactions=LIMIT) as store:
        yield store


@pytest.mark.decision("D40")
async def test_transactions_go_in_steps_beside_the_units_of_others(
    store: SqliteStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "DROPPED_AT_ONCE", 2)
    for number in range(LIMIT + 5):
        await unit_of(store).add_transaction(decided(f"{number:011d}"))
    clock.move_to(after(hours=1))

    await unit_of(store).next_due()
    beyond = [await count(store, "transactions") - LIMIT for _ in range(3)]

    assert beyond == [3, 1, 0]


@pytest.mark.decision("D20")
@pytest.mark.parametrize(("minutes", "kept"), [(0, 1), (14.99, 1), (15, 0), (100, 0)])
async def test_card_pages_go_when_they_expire(
    store: SqliteStore, clock: VirtualClock, minutes: float, kept: int
) -> None:
    await unit_of(store).add_card_page(checkout())

    clock.move_to(after(minutes=minutes))
    await unit_of(store).next_due()

    assert await count(store, "checkouts") == kept


async def test_what_was_posted_and_sent_is_never_forgotten(
    store: SqliteStore, clock: VirtualClock
) -> None:
    """The SMS history and the postings stay for ever."""
    await store.run(prepared)
    clock.move_to(after(days=4000))
    await unit_of(store).next_due()

    assert await count(store, "messages") == 3
    assert await count(store, "transfers") == 1
    assert await count(store, "jobs") == 3
    assert await count(store, "checkouts") == 0
