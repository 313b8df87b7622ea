"""The journal is saved in the background; the log counts requests that could not be saved."""

import asyncio

import pytest

from sandbox_sim.control.journal import ENTRIES_PER_UNIT, Journal
from sandbox_sim.records.listing import Listing
from tests.conftest import Works
from tests.fakes import FailingStore
from tests.sample_records import entry


async def test_requests_that_could_not_be_saved_get_one_line_a_second(
    works: Works, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    monkeypatch.setattr(works.clock, "monotonic", lambda: now[0])
    store = FailingStore(works.store)
    journal = Journal(store, works.clock)
    store.failures = 4

    for at, names in ((0.0, "a"), (0.5, "bc"), (0.9, "d"), (1.0, "e")):
        now[0] = at
        for name in names:
            journal.note(entry(name))
        await journal.save()

    assert [each.getMessage() for each in caplog.records] == [
        "1 request is not in the journal: the disk is full",
        "4 requests are not in the journal: the disk is full",
    ]


async def test_other_tasks_run_between_the_units_of_work_of_the_journal(works: Works) -> None:
    journal = Journal(works.store, works.clock)
    for number in range(2 * ENTRIES_PER_UNIT):
        journal.note(entry(str(number)))

    saving = asyncio.create_task(journal.save())
    await asyncio.sleep(0)  # `save` begins
    await asyncio.sleep(0)  # the first unit runs
    kept = await works.store.run(lambda unit: unit.list_entries(Listing(limit=1000)))
    assert len(kept) == ENTRIES_PER_UNIT

    await saving
    kept = await works.store.run(lambda unit: unit.list_entries(Listing(limit=1000)))
    assert len(kept) == 2 * ENTRIES_PER_UNIT


async def test_no_entry_is_lost_when_the_search_that_saves_the_journal_is_cancelled(
    works: Works,
) -> None:
    journal = Journal(works.store, works.clock)
    for number in range(3 * ENTRIES_PER_UNIT):
        journal.note(entry(str(number)))

    saving = asyncio.create_task(journal.save())
    await asyncio.sleep(0)  # the search ends while units of work remain
    saving.cancel()
    await asyncio.gather(saving, return_exceptions=True)
    await journal.save()

    kept = await works.store.run(lambda unit: unit.list_entries(Listing(limit=1000)))
    assert len(kept) == 3 * ENTRIES_PER_UNIT
