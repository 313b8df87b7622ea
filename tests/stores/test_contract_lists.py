"""The lists of every store: newest first, by filters, in pages; and the SMS history (D26)."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import date
from typing import Any

import pytest

from sandbox_sim.ports import Store, Unit
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import HistoryQuery, SmsStatus
from tests.sample_records import NOW, SERVICE, after, callback, entry, message, transaction
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


LISTS: dict[str, tuple[Callable[[Unit, Listing], Awaitable[Sequence[Any]]], str, str]] = {
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
async def test_a_list_is_newest_first_after_any_record_or_by_ids(store: Store, kind: str) -> None:
    """The memory store, which has no index, also returns records with other ids."""
    read, name, form = LISTS[kind]
    await store.run(fill)

    async def find(listing: Listing) -> list[str]:
        return [getattr(each, name) for each in await store.run(lambda unit: read(unit, listing))]

    for service_id, after_number, limit, expected in FOUND:
        after_id = None if after_number is None else form.format(after_number)
        found = await find(Listing(service_id, after_id, limit))
        assert found == [form.format(number) for number in expected]

    wanted = [form.format(number) for number in (1, 4)]
    only = await find(Listing(only=(name, wanted)))
    assert [each for each in only if each in wanted] == wanted[::-1]


async def test_a_watcher_is_notified_of_writes_and_not_of_reads_until_it_stops(
    store: Store,
) -> None:
    notices: list[str] = []
    store.watch(lambda: notices.append("one"))
    unwatch = store.watch(lambda: notices.append("other"))

    await unit_of(store).add_transaction(transaction())
    await unit_of(store).transaction(55, "T1")
    assert notices == ["one", "other"]

    unwatch()
    await unit_of(store).save_transaction(transaction())
    assert notices == ["one", "other", "one"]


SENT = {"status": SmsStatus.SENT}

MESSAGES = [
    message("single"),
    message("batch-1", batch_id="B1", created_at=after(hours=1)),
    message("batch-2", batch_id="B1", created_at=after(hours=1), **SENT),
    message("late", created_at=after(hours=15) - (after(seconds=1) - NOW), **SENT),
    message("next day", created_at=after(hours=15)),
    message("stranger", service_id=56, created_at=after(hours=20)),
]

NEWEST_FIRST = ["next day", "late", "batch-2", "batch-1", "single"]


@pytest.fixture
async def filled(store: Store) -> Store:
    """A store with a single send, a batch of two, one sent at 23:59:59 and one at midnight."""
    for sends in (MESSAGES[:1], MESSAGES[1:3], MESSAGES[3:4], MESSAGES[4:5], MESSAGES[5:]):
        await unit_of(store).add_messages(sends)
    return store


async def in_history(store: Store, query: HistoryQuery) -> tuple[list[str], int]:
    messages, total = await unit_of(store).history(query)
    return [each.processing_id for each in messages], total


FIRST, SECOND = date(2026, 1, 1), date(2026, 1, 2)


@pytest.mark.decision("D26")
@pytest.mark.spec("endpoint.11")
async def test_the_filtered_history_has_the_newest_matching_message_first(filled: Store) -> None:
    for query, expected in (
        (HistoryQuery(SERVICE), NEWEST_FIRST),
        (HistoryQuery(56), ["stranger"]),
        (HistoryQuery(57), []),
        (HistoryQuery(SERVICE, status=SmsStatus.SENT), ["late", "batch-2"]),
        (HistoryQuery(SERVICE, status=SmsStatus.FAILED), []),
        (HistoryQuery(SERVICE, batch_id="B1"), ["batch-2", "batch-1"]),
        (HistoryQuery(SERVICE, batch_id="B1", status=SmsStatus.SENT), ["batch-2"]),
        (HistoryQuery(56, batch_id="B1"), []),
        (HistoryQuery(SERVICE, start_date=FIRST, end_date=FIRST), NEWEST_FIRST[1:]),
        (HistoryQuery(SERVICE, start_date=SECOND), ["next day"]),
        (HistoryQuery(SERVICE, end_date=FIRST), NEWEST_FIRST[1:]),
        (HistoryQuery(SERVICE, start_date=SECOND, end_date=FIRST), []),
        (HistoryQuery(SERVICE, start_date=date.min, end_date=date.max), NEWEST_FIRST),
    ):
        assert await in_history(filled, query) == (expected, len(expected)), query

    await unit_of(filled).save_messages([MESSAGES[0].settled(after(days=3))])
    found, _ = await in_history(filled, HistoryQuery(SERVICE))
    assert found == NEWEST_FIRST, "a settled message keeps its place"


@pytest.mark.decision("D26")
@pytest.mark.spec("endpoint.11")
@pytest.mark.parametrize("status", [None, SmsStatus.SENT], ids=["all", "filtered"])
async def test_pages_of_the_history_are_complete_and_empty_beyond_the_end(
    filled: Store, status: SmsStatus | None
) -> None:
    whole, total = await in_history(filled, HistoryQuery(SERVICE, status=status))
    for limit in (1, 2, 5, 100):
        pages = [
            await in_history(filled, HistoryQuery(SERVICE, page, limit, status))
            for page in range(1, -(-total // limit) + 2)
        ]

        assert [name for names, _ in pages for name in names] == whole
        assert {count for _, count in pages} == {total}
        assert [len(names) for names, _ in pages[:-2]] == [limit] * (len(pages) - 2)
        assert pages[-1][0] == []
    for page in (2**31, 2**62, 2**63, 10**400):
        beyond = HistoryQuery(SERVICE, page, status=status)
        assert await in_history(filled, beyond) == ([], total)
