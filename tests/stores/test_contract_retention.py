"""Every store deletes the oldest records above a limit, and never open or waiting ones."""

from collections.abc import AsyncIterator

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import Store
from sandbox_sim.records.callbacks import DeliveryState
from sandbox_sim.records.transactions import Status
from sandbox_sim.stores.memory import memory_store
from sandbox_sim.stores.sql import sql_unit
from tests.sample_records import SERVICE, after, callback, every, transaction
from tests.stores.conftest import OpenStore, cleaned_up
from tests.units import unit_of

LIMIT = 3

OTHER = 56


@pytest.fixture
async def store(
    open_store: OpenStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Store]:
    """A store that keeps three records of each kind that has a limit."""
    for module in (memory_store, sql_unit):
        monkeypatch.setattr(module, "KEPT_CALLBACKS", LIMIT)
    async with open_store(clock, keep_transactions=LIMIT) as store:
        yield store


@pytest.mark.decision("D15", "D40")
@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize(("minutes", "kept"), [(0, 9), (14.99, 9), (16, 1), (100_000, 1)])
async def test_the_oldest_final_transactions_are_deleted_after_fifteen_minutes(
    store: Store, clock: VirtualClock, minutes: float, kept: int, by_hand: bool
) -> None:
    is_open = transaction("10000000000", transaction_id="open", by_hand=by_hand)
    await unit_of(store).add_transaction(is_open)
    for number in range(1, 10):
        final = {"status": Status.SUCCESSFUL, "decided_at": after()}
        made = transaction(f"1000000000{number}", transaction_id=f"T{number % 7}", **final)
        await unit_of(store).add_transaction(made)

    clock.move_to(after(minutes=minutes))
    newest = transaction("20000000000", transaction_id="new", initiated_at=clock.now())
    await unit_of(store).add_transaction(newest)
    await cleaned_up(store)

    left = await unit_of(store).list_transactions(every(SERVICE))
    ids = [each.network_transaction_id for each in left]
    assert ids == [
        "20000000000",
        *(f"1000000000{number}" for number in range(9, 9 - kept, -1)),
        "10000000000",
    ]


@pytest.mark.decision("D40")
async def test_the_oldest_are_deleted_after_the_clock_was_set_back(
    store: Store, clock: VirtualClock
) -> None:
    clock.move_to(after(days=30))
    await cleaned_up(store)
    clock.move_to(after())
    for number in range(9):
        final = {"status": Status.SUCCESSFUL, "decided_at": after()}
        made = transaction(f"1000000000{number}", transaction_id=f"T{number}", **final)
        await unit_of(store).add_transaction(made)

    clock.move_to(after(hours=1))
    newest = transaction("20000000000", transaction_id="new", initiated_at=clock.now())
    await unit_of(store).add_transaction(newest)
    await cleaned_up(store)

    assert len(await unit_of(store).list_transactions(every(SERVICE))) == LIMIT


async def test_waiting_callbacks_and_the_newest_finished_ones_of_each_service_are_kept(
    store: Store, clock: VirtualClock
) -> None:
    async def save(name: str, state: DeliveryState, service_id: int = SERVICE) -> None:
        made = callback(name, state=state, service_id=service_id)
        await unit_of(store).save_callback(made)

    async def kept(service_id: int) -> list[str]:
        found = await unit_of(store).list_callbacks(every(service_id))
        return [each.id for each in found]

    waiting = [f"P{number}" for number in range(2 * LIMIT)]
    for number, name in enumerate(waiting):
        await save(name, DeliveryState.RETRYING if number % 2 else DeliveryState.PENDING)
    for number in range(LIMIT + 2):
        await save(f"C{number}", DeliveryState.FAILED if number % 2 else DeliveryState.DELIVERED)
    for number in range(LIMIT):
        await save(f"other {number}", DeliveryState.DELIVERED, OTHER)
    clock.move_to(after(days=400))
    await cleaned_up(store)

    assert await kept(SERVICE) == ["C4", "C3", "C2", *reversed(waiting)]
    assert await kept(OTHER) == ["other 2", "other 1", "other 0"]
