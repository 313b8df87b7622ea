"""In every store a reset deletes all records of one service or of all; a snapshot restores them."""

from datetime import datetime
from functools import partial
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import JobLost, Store
from sandbox_sim.records.ledger import LedgerQuery
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import HistoryQuery
from sandbox_sim.records.overrides import Match
from sandbox_sim.records.snapshots import Snapshot, with_times_shifted
from tests.sample_records import NOW, SERVICE, after, delivery, rule
from tests.stores.conftest import claim
from tests.stores.two_services import (
    BOTH,
    OTHER,
    add_records,
    add_records_of_both,
    all_records,
    records_of,
)
from tests.units import unit_of


def later(state: dict[str, Any], **by: float) -> dict[str, Any]:
    """The state with every time moved by this much."""

    def moved(kept: Any) -> Any:
        if isinstance(kept, list):
            return [moved(each) for each in kept]
        return with_times_shifted(kept, after(**by) - NOW)

    return {name: moved(kept) for name, kept in state.items()}


async def save(store: Store, name: str = "before", service_id: int | None = None) -> Snapshot:
    return await unit_of(store).save_snapshot(name, service_id, NOW)


async def restore(store: Store, now: datetime = NOW, name: str = "before") -> Snapshot | None:
    return await unit_of(store).restore_snapshot(name, now)


@pytest.fixture(autouse=True)
async def _records(store: Store) -> None:
    await store.run(add_records_of_both)


async def test_a_snapshot_restores_every_record_each_time(store: Store) -> None:
    before = await store.run(all_records)
    taken = await save(store)
    await unit_of(store).reset(None)

    for _ in range(2):
        assert await restore(store) == taken
        assert await store.run(all_records) == before
        due = [(each.due_at, each.subject) for each in await claim(store, now=after(hours=1))]
        assert due == [
            (after(minutes=n), f"C{service_id}-1-{n}") for n in (1, 2) for service_id in BOTH
        ]
        await store.run(partial(add_records, run=2))
        await unit_of(store).clear_inbox("orders")


async def test_a_snapshot_of_one_service_does_not_change_the_others(store: Store) -> None:
    ours = await store.run(lambda unit: records_of(unit, SERVICE))
    await save(store, service_id=SERVICE)
    await unit_of(store).reset(SERVICE)
    await store.run(partial(add_records, service_id=OTHER, run=2))
    await unit_of(store).add_inbox_message("orders", delivery("2"))
    theirs = await store.run(lambda unit: records_of(unit, OTHER))

    await restore(store)

    restored = await store.run(lambda unit: records_of(unit, SERVICE))
    # SQLite has since given the numbers of these postings to the other service.
    restored["ledger"] = [line.transfer for line in restored["ledger"]]
    ours["ledger"] = [line.transfer for line in ours["ledger"]]
    assert restored == ours
    assert await store.run(lambda unit: records_of(unit, OTHER)) == theirs
    assert len(await unit_of(store).inbox_messages("orders", Listing())) == 2
    assert len(await claim(store, now=after(hours=1))) == 6
    assert len(await unit_of(store).ledger_page(LedgerQuery())) == 6


async def test_restored_rules_keep_their_place_among_rules_for_all_services(store: Store) -> None:
    """The newest of the rules that match a request applies, so their order matters."""
    for_all = rule("for all", match=Match())
    await unit_of(store).save_user_rule(for_all)
    await save(store, service_id=SERVICE)
    await unit_of(store).save_user_rule(rule("newer for all", match=Match()))

    await restore(store)

    names = [each.id for each in await unit_of(store).user_rules()]
    assert names[:2] == ["newer for all", "for all"]
    assert names[2:] == ["O56-1-2", "O56-1-1", "O55-1-2", "O55-1-1"]


async def test_a_restore_deletes_newer_records(store: Store) -> None:
    await save(store, service_id=SERVICE)
    await store.run(partial(add_records, run=2))

    await restore(store)

    found = await store.run(lambda unit: records_of(unit, SERVICE))
    assert [each.id for each in found["callbacks"]] == ["C55-1-2", "C55-1-1"]
    assert found["pages"][2:] == [None, None]
    assert found["balance"].amount == 1000
    assert len(await claim(store, now=after(hours=1))) == 4


async def test_a_restore_moves_every_time_by_the_time_since_the_snapshot(
    store: Store, clock: VirtualClock
) -> None:
    before = await store.run(lambda unit: records_of(unit, SERVICE))
    await save(store)
    clock.move_to(after(minutes=16, microseconds=3))

    await restore(store, clock.now())

    found = await store.run(lambda unit: records_of(unit, SERVICE))
    assert found == later(before, minutes=16, microseconds=3)
    assert found["callbacks"][0].attempts[0].next_attempt_at == after(minutes=21, microseconds=3)
    (message,) = await unit_of(store).inbox_messages("orders", Listing())
    assert message.at == clock.now()
    assert await claim(store, now=after(minutes=17)) == []
    assert len(await claim(store, now=after(minutes=17, microseconds=3))) == 2


async def test_a_job_claimed_at_the_snapshot_can_be_claimed_after_a_restore(store: Store) -> None:
    """A server that still works on it gets `JobLost`, so it cannot change the restored record."""
    (held,) = await claim(store, limit=1, now=after(minutes=1))
    await save(store)

    await restore(store)

    with pytest.raises(JobLost):
        await unit_of(store).finish(held)
    (again,) = await claim(store, limit=1, now=after(minutes=1))
    assert again._replace(number=0) == held._replace(number=0)
    await unit_of(store).finish(again)


async def test_a_snapshot_counts_its_records_and_is_listed_until_deleted(store: Store) -> None:
    paid = ("transactions", "checkouts", "callbacks", "jobs", "transfers")
    own = (*paid, "messages", "requests", "rules")

    of_one, of_all = await save(store, "one", SERVICE), await save(store, "all")

    assert of_one == Snapshot("one", SERVICE, NOW, dict.fromkeys(own, 2))
    assert of_all == Snapshot("all", None, NOW, {**dict.fromkeys(own, 4), "inbox": 1})
    for service_id in (SERVICE, None):
        await unit_of(store).reset(service_id)
    assert await unit_of(store).snapshots() == [of_all, of_one]

    assert [await unit_of(store).delete_snapshot("one") for _ in range(2)] == [True, False]
    assert await restore(store, name="one") is None
    assert await unit_of(store).snapshots() == [of_all]


async def test_a_snapshot_replaces_one_of_the_same_name_even_if_it_is_empty(store: Store) -> None:
    await save(store)
    await save(store, "another")
    await unit_of(store).reset(SERVICE)
    emptier = await save(store, service_id=SERVICE)
    assert not any(emptier.records.values())
    await store.run(partial(add_records, run=2))

    listed = await unit_of(store).snapshots()
    assert [each.name for each in listed] == ["before", "another"]
    assert await restore(store) == emptier
    assert await unit_of(store).history(HistoryQuery(SERVICE)) == ([], 0)
    assert len(await claim(store, now=after(hours=1))) == 2, "those of the other service"


async def test_a_state_with_snapshots_does_not_count_as_a_restored_backup(store: Store) -> None:
    assert not await unit_of(store).restored()

    await save(store)
    assert not await unit_of(store).restored()
    await save(store, service_id=SERVICE)
    assert not await unit_of(store).restored()
    await restore(store)
    await unit_of(store).delete_snapshot("before")

    assert not await unit_of(store).restored()


async def test_a_restore_notifies_watchers_of_jobs_and_writes(store: Store) -> None:
    """A watcher of jobs gets the due time of the first restored job."""
    await save(store)
    await unit_of(store).reset(None)
    jobs: list[datetime] = []
    writes: list[None] = []
    store.watch_jobs(jobs.append)
    store.watch(lambda: writes.append(None))

    await restore(store)

    assert min(jobs) == after(minutes=1)
    assert writes


async def test_records_written_after_a_restore_come_first(store: Store) -> None:
    """New records get higher numbers and positions than restored ones."""
    await save(store)
    await restore(store)

    await store.run(partial(add_records, run=2))

    found = await store.run(lambda unit: records_of(unit, SERVICE))
    for kind, name in (("callbacks", "id"), ("messages", "processing_id")):
        listed = [getattr(each, name)[1:] for each in found[kind]]
        assert listed == ["55-2-2", "55-2-1", "55-1-2", "55-1-1"]
    assert found["history"] == found["messages"]
    numbers = [line.number for line in found["ledger"]]
    assert numbers == sorted(set(numbers), reverse=True)


EMPTY = 57  # a service without records


async def test_a_reset_of_one_service_does_not_change_the_other(store: Store) -> None:
    theirs = await store.run(lambda unit: records_of(unit, OTHER))

    await unit_of(store).reset(SERVICE)

    empty = await store.run(lambda unit: records_of(unit, EMPTY))
    assert await store.run(lambda unit: records_of(unit, SERVICE)) == empty
    assert await store.run(lambda unit: records_of(unit, OTHER)) == theirs
    assert len(await unit_of(store).inbox_messages("orders", Listing())) == 1
    assert [each.service_id for each in await claim(store, now=after(hours=1))] == [OTHER] * 2


async def test_a_reset_of_all_deletes_inboxes_too(store: Store) -> None:
    await unit_of(store).reset(None)

    empty = await store.run(lambda unit: records_of(unit, EMPTY))
    for service_id in (SERVICE, OTHER):
        assert await store.run(partial(records_of, service_id=service_id)) == empty
    assert await unit_of(store).inbox_messages("orders", Listing()) == []
    assert await claim(store, now=after(hours=1)) == []
