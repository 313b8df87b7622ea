"""Behaviour of the memory store alone: it limits the records that it keeps, and frees others."""

import weakref
from functools import partial

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import Unit
from sandbox_sim.records.callbacks import DeliveryState
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.transactions import Status
from sandbox_sim.stores.memory import memory_store
from sandbox_sim.stores.memory.memory_store import MemoryStore
from tests.sample_records import (
    NOW,
    SERVICE,
    after,
    callback,
    checkout,
    delivery,
    every,
    job,
    transaction,
)
from tests.units import unit_of

LIMIT = 3

decided = partial(transaction, status=Status.SUCCESSFUL, decided_at=NOW)


@pytest.fixture
def store(clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """A store that keeps three transactions and finished callbacks."""
    monkeypatch.setattr(memory_store, "KEPT_CALLBACKS", LIMIT)
    return MemoryStore(clock, keep_transactions=LIMIT)


async def save(store: MemoryStore, callback_id: str, state: DeliveryState) -> None:
    await unit_of(store).save_callback(callback(callback_id, state=state))


async def kept(store: MemoryStore) -> list[str]:
    return [each.id for each in await unit_of(store).list_callbacks(every(SERVICE))]


class TestFinishedCallbacks:
    async def test_the_earliest_finished_callbacks_are_dropped_and_each_counts_once(
        self, store: MemoryStore
    ) -> None:
        for number in range(4):
            await save(store, f"C{number}", DeliveryState.PENDING)
        for number in (3, 0, 1, 2):
            await save(store, f"C{number}", DeliveryState.FAILED)
        assert await kept(store) == ["C2", "C1", "C0"]

        for _ in range(2 * LIMIT):
            await save(store, "again", DeliveryState.DELIVERED)
        assert await kept(store) == ["again", "C2", "C1"]

    async def test_a_failed_unit_drops_no_callback(self, store: MemoryStore) -> None:
        for number in range(LIMIT):
            await save(store, f"C{number}", DeliveryState.DELIVERED)

        async def work(unit: Unit) -> None:
            await unit.save_callback(callback("C8", state=DeliveryState.DELIVERED))
            await unit.save_callback(callback("C9", state=DeliveryState.DELIVERED))
            raise RuntimeError

        with pytest.raises(RuntimeError):
            await store.run(work)

        assert await kept(store) == ["C2", "C1", "C0"]
        await save(store, "C3", DeliveryState.DELIVERED)
        assert await kept(store) == ["C3", "C2", "C1"]


@pytest.mark.decision("D15")
@pytest.mark.decision("D40")
class TestTransactions:
    async def test_an_open_transaction_is_kept_until_it_ends(
        self, store: MemoryStore, clock: VirtualClock
    ) -> None:
        held = store._unit._services[SERVICE].transactions
        await unit_of(store).add_transaction(transaction())
        for hour in range(1, 5):
            clock.move_to(after(hours=hour))
            other = decided(f"{hour:011d}", transaction_id=f"T{hour}", initiated_at=clock.now())
            await unit_of(store).add_transaction(other)
        assert list(held.records) == ["10000000001", "00000000003", "00000000004"]

        ended = transaction().with_status(Status.SUCCESSFUL, clock.now())
        await unit_of(store).save_transaction(ended)
        for minute in (2, 4):
            clock.move_to(after(hours=4, minutes=minute))
            other = decided("5" * 10 + str(minute), initiated_at=clock.now())
            await unit_of(store).add_transaction(other)

        assert "10000000001" not in held.records

    async def test_a_reused_transaction_id_still_names_the_newer_transaction(
        self, store: MemoryStore, clock: VirtualClock
    ) -> None:
        newer = transaction("10000000002", initiated_at=after(minutes=10))
        await unit_of(store).add_transaction(decided("10000000001"))
        await unit_of(store).add_transaction(newer)
        clock.move_to(after(minutes=16))
        for number in range(3, 6):
            made = decided(f"1000000000{number}", transaction_id="T3", initiated_at=clock.now())
            await unit_of(store).add_transaction(made)

        assert await unit_of(store).transaction(SERVICE, "T1") == newer


async def test_expired_checkouts_are_dropped(store: MemoryStore, clock: VirtualClock) -> None:
    await unit_of(store).add_card_page(checkout("old"))
    clock.move_to(after(minutes=15))
    await unit_of(store).add_card_page(checkout("new", expires_at=after(minutes=30)))

    assert list(store._unit._card_pages) == ["new"]


async def test_the_jobs_of_reset_services_do_not_pile_up(store: MemoryStore) -> None:
    await unit_of(store).add_job(job("kept", after(minutes=1), service_id=56))
    for _ in range(1000):
        await unit_of(store).add_job(job("deleted", after(minutes=5)))
        await unit_of(store).reset(SERVICE)

    assert len(store._unit._heap) < 200
    assert list(store._unit._services) == [56]
    (due,) = await unit_of(store).claim_due(after(minutes=5), 2000)
    assert due.subject == "kept"


async def test_reading_a_missing_inbox_and_an_empty_claim_write_nothing(store: MemoryStore) -> None:
    writes: list[str] = []
    store.watch(lambda: writes.append("written"))

    for number in range(5):
        await unit_of(store).inbox_messages(str(number), Listing())
    await unit_of(store).claim_due(NOW, 10)

    assert (len(store._unit._inboxes.boxes), writes) == (0, [])


async def test_a_reset_frees_the_deleted_records_at_once(store: MemoryStore) -> None:
    class Body(str):  # noqa: SLOT000 -- with weak references
        """A text that can have a weak reference, which shows whether the text is freed."""

    body = Body("x")
    reference = weakref.ref(body)
    await unit_of(store).add_inbox_message("orders", delivery(body))
    del body

    await unit_of(store).reset(None)

    assert reference() is None
