"""SMS history in every store: newest first, by filters, in pages (D26)."""

from datetime import date

import pytest

from sandbox_sim.ports import Store
from sandbox_sim.records.messages import HistoryQuery, SmsStatus
from tests.sample_records import NOW, SERVICE, after, message
from tests.units import unit_of

pytestmark = [pytest.mark.decision("D26"), pytest.mark.spec("endpoint.11")]


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


async def found(store: Store, query: HistoryQuery) -> tuple[list[str], int]:
    messages, total = await unit_of(store).history(query)
    return [each.processing_id for each in messages], total


FIRST, SECOND = date(2026, 1, 1), date(2026, 1, 2)


async def test_filters_choose_and_the_newest_comes_first(filled: Store) -> None:
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
        assert await found(filled, query) == (expected, len(expected)), query


@pytest.mark.parametrize("status", [None, SmsStatus.SENT], ids=["all", "filtered"])
async def test_pages_follow_one_another_and_the_one_beyond_the_end_is_empty(
    filled: Store, status: SmsStatus | None
) -> None:
    whole, total = await found(filled, HistoryQuery(SERVICE, status=status))
    for limit in (1, 2, 5, 100):
        pages = [
            await found(filled, HistoryQuery(SERVICE, page, limit, status))
            for page in range(1, -(-total // limit) + 2)
        ]

        assert [name for names, _ in pages for name in names] == whole
        assert {count for _, count in pages} == {total}
        assert [len(names) for names, _ in pages[:-2]] == [limit] * (len(pages) - 2)
        assert pages[-1][0] == []


async def test_settling_a_message_does_not_move_it(filled: Store) -> None:
    settled = MESSAGES[0].settled(after(days=3))
    await unit_of(filled).save_messages([settled])

    names, _ = await found(filled, HistoryQuery(SERVICE))

    assert names == NEWEST_FIRST
