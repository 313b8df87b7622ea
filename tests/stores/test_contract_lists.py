"""The lists of every store: newest first, of one service or of all, starting after any record."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from sandbox_sim.ports import Store, Unit
from sandbox_sim.records.listing import Listing
from tests.sample_records import after, callback, entry, message, transaction
from tests.units import unit_of

SERVICES = (55, 56, 55, 56, 55)


async def fill(unit: Unit) -> None:
    """Write five records of each kind, one second apart, for two services in turn."""
    for number, service_id in enumerate(SERVICES):
        at = after(seconds=number)
        await unit.add_transaction(
            transaction(
                f"1000000000{number}",
                service_id=service_id,
                transaction_id=f"T{number}",
                initiated_at=at,
            )
        )
        await unit.save_callback(callback(f"C{number}", service_id=service_id, created_at=at))
        await unit.add_messages([message(f"M{number}", service_id=service_id, created_at=at)])
        await unit.add_entries([entry(f"R{number}", service_id=service_id, at=at)])


Read = Callable[[Unit, Listing], Awaitable[Sequence[Any]]]

LISTS: dict[str, tuple[Read, str, str]] = {
    "transactions": (
        lambda u, listing: u.list_transactions(listing),
        "network_transaction_id",
        "1000000000{}",
    ),
    "callbacks": (lambda u, listing: u.list_callbacks(listing), "id", "C{}"),
    "requests": (lambda u, listing: u.list_entries(listing), "id", "R{}"),
    "messages": (lambda u, listing: u.list_messages(listing), "processing_id", "M{}"),
}


# The service, the record after which the list starts, the limit, and the expected result.
FOUND: list[tuple[int | None, int | None, int, list[int]]] = [
    (None, None, 10, [4, 3, 2, 1, 0]),
    (None, None, 2, [4, 3]),
    (None, 3, 10, [2, 1, 0]),
    (None, 0, 10, []),
    (55, None, 10, [4, 2, 0]),
    (56, None, 1, [3]),
    (55, 4, 1, [2]),
    (57, None, 10, []),
    (None, 9, 10, []),
]


@pytest.mark.parametrize("kind", LISTS)
async def test_newest_first_from_any_record_on(store: Store, kind: str) -> None:
    read, name, form = LISTS[kind]
    await store.run(fill)

    for service_id, after_number, limit, expected in FOUND:
        going_on = None if after_number is None else form.format(after_number)
        listing = Listing(service_id, going_on, limit)

        async def find(unit: Unit, listing: Listing = listing) -> Sequence[Any]:
            return await read(unit, listing)

        found = await store.run(find)
        assert [getattr(each, name) for each in found] == [form.format(n) for n in expected]


@pytest.mark.parametrize("kind", LISTS)
async def test_a_page_of_only_some_ids_has_every_record_with_one_of_them(
    store: Store, kind: str
) -> None:
    """The memory store, which has no index, returns the other records too."""
    read, name, form = LISTS[kind]
    await store.run(fill)
    wanted = [form.format(number) for number in (1, 4)]

    found = await store.run(lambda unit: read(unit, Listing(only=(name, wanted))))

    ids = [getattr(each, name) for each in found]
    assert [each for each in ids if each in wanted] == wanted[::-1]


async def test_whoever_watches_hears_of_writing_and_not_of_reading(store: Store) -> None:
    heard: list[str] = []
    store.watch(lambda: heard.append("one"))
    store.watch(lambda: heard.append("other"))

    await unit_of(store).add_transaction(transaction())
    assert heard == ["one", "other"]

    await unit_of(store).transaction(55, "T1")
    assert heard == ["one", "other"]


async def test_whoever_watches_no_longer_hears_nothing_more(store: Store) -> None:
    heard: list[str] = []
    store.watch(lambda: heard.append("one"))
    unwatch = store.watch(lambda: heard.append("other"))
    unwatch()

    await unit_of(store).add_transaction(transaction())
    assert heard == ["one"]
