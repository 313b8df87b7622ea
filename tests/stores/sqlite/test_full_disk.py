"""A unit that does not fit on a full disk fails as a whole, and other units are saved."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import StoreError, Unit
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.transactions import Status
from sandbox_sim.stores.sqlite import sqlite_store
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from tests.sample_records import (
    NOW,
    SERVICE,
    after,
    callback,
    delivery,
    every,
    job,
    message,
    transaction,
)
from tests.sqlite_files import busy, contents, fill_disk, free_disk, opened, rows
from tests.stores.conftest import cleaned_up
from tests.stores.sqlite.conftest import post, posted
from tests.stores.writes import decide_and_charge, prepared, state
from tests.units import unit_of

FULL = "the disk is full"


async def too_much(unit: Unit) -> None:
    """Make most kinds of writes, and then one of a megabyte."""
    await decide_and_charge(unit)
    await unit.add_messages([message("M4")])
    await unit.add_job(job("of the unit that did not fit"))
    await unit.add_inbox_message("orders", delivery("x" * 1_000_000))


@pytest.mark.parametrize("spare_pages", [0, 4])
async def test_a_unit_that_does_not_fit_leaves_nothing_behind(path: Path, spare_pages: int) -> None:
    async with opened(path) as store:
        await store.run(prepared)
        before = await store.run(state)
        await fill_disk(store, spare_pages)

        with pytest.raises(StoreError, match=f"^{path}: {FULL}$"):
            await store.run(too_much)
        assert await store.run(state) == before

    async with opened(path) as store:
        assert await store.run(state) == before
        assert await rows(store, "PRAGMA integrity_check") == [("ok",)]
        jobs = await unit_of(store).claim_due(NOW, 10)
        assert [each.subject for each in jobs] == ["due", "due too"]


async def test_units_that_fit_are_saved_beside_a_unit_that_does_not(path: Path) -> None:
    async with opened(path) as store:
        await fill_disk(store, spare_pages=4)
        async with busy(store):
            before = [asyncio.create_task(store.run(partial(post, each))) for each in "abc"]
            large = asyncio.create_task(store.run(too_much))
            after = [asyncio.create_task(store.run(partial(post, each))) for each in "xyz"]
        failed, *saved = await asyncio.gather(large, *before, *after, return_exceptions=True)

        assert FULL in str(failed)
        assert saved == [*"abcxyz"]

    async with opened(path) as store:
        assert await posted(store) == [*"abcxyz"]


async def test_each_unit_is_saved_completely_or_not_at_all(path: Path) -> None:
    saved = []
    async with opened(path) as store:
        await fill_disk(store, spare_pages=20)

        async def payment(number: int, unit: Unit) -> None:
            await unit.add_transaction(transaction(f"{number:011d}", transaction_id=str(number)))
            await unit.save_callback(callback(str(number), body="x" * 1000))
            await unit.add_job(job(str(number)))

        for number in range(1000):
            try:
                await store.run(partial(payment, number))
            except StoreError:
                break
            saved.append(str(number))

        async def found(unit: Unit) -> list[list[str]]:
            kept = [await unit.transaction(SERVICE, str(number)) for number in range(1000)]
            return [
                [each.transaction_id for each in kept if each is not None],
                [each.id for each in reversed(await unit.list_callbacks(every(SERVICE)))],
                [each.subject for each in await unit.claim_due(NOW, 1000)],
            ]

        assert 0 < len(saved) < 1000
        assert await store.run(found) == [saved] * 3


async def test_a_store_works_again_when_the_disk_has_room(path: Path) -> None:
    async with opened(path) as store:
        await fill_disk(store)
        for _ in range(3):
            with pytest.raises(StoreError, match=FULL):
                await store.run(too_much)

        await free_disk(store)
        await store.run(too_much)

        assert len(await unit_of(store).inbox_messages("orders", Listing())) == 1


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """Limit the size of every file and of the log, as a full disk does."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_log_without_room_is_copied_and_restarted(path: Path) -> None:
    async with opened(path) as store:
        with no_file_larger_than(400_000):
            units = [partial(post, str(number)) for number in range(1000)]
            with pytest.raises(StoreError):
                [await store.run(unit) for unit in units]

            assert await store.run(partial(post, "next")) == "next"

        found = await posted(store)
        assert found == [*map(str, range(len(found) - 1)), "next"]


async def test_a_file_without_room_for_its_tables_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            sqlite_store, "_PRAGMAS", (*sqlite_store._PRAGMAS, "PRAGMA max_page_count = 5")
        )
        with pytest.raises(StoreError, match=f"{path}: .*{FULL}"):
            await SqliteStore(path, VirtualClock()).open()
        created = contents(path.parent)
        with pytest.raises(StoreError, match=FULL):
            await SqliteStore(path, VirtualClock()).open()
        assert contents(path.parent) == created

    async with opened(path) as store:
        await store.run(prepared)


async def test_units_that_only_read_succeed_while_there_is_no_room_to_delete(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = VirtualClock()
    async with opened(path, clock, keep_transactions=1) as store:
        for number in "123":
            final = transaction(number, transaction_id=number, status=Status.SUCCESSFUL)
            await unit_of(store).add_transaction(final)
        clock.move_to(after(hours=1))

        with no_file_larger_than(1):
            for _ in range(3):
                assert await unit_of(store).transaction(SERVICE, "1") is not None
                await cleaned_up(store)
            assert f"expired records could not be deleted: {path}" in caplog.text

        clock.move_to(after(hours=2))
        await cleaned_up(store)
        assert await unit_of(store).transaction(SERVICE, "1") is None
