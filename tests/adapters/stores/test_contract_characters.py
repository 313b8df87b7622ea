"""Difficult texts and numbers: a store keeps them exactly, or refuses them with a `StoreError`."""

from collections.abc import Awaitable, Callable
from itertools import product
from operator import methodcaller

import pytest

from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.sms.sms_messages import HistoryQuery, SmsStatus
from sandbox_sim.gateway.ports import Store, StoreError, Unit
from tests.records import SERVICE, callback, checkout, delivery, job, message, posting, transaction

ODD = [
    "",
    " ",
    "'; DROP TABLE jobs; --",
    '"',
    "\\",
    "\\000",
    "%s %(a)s {serial} $1 ? :name @p1",
    "Ɛyɛ 😀 e\u0301 \u202e \u2028 \ufeff \uffff",
    "\x01\x1b\x7f\x85\r\n\t",
    "x" * 100_000,
]
NO_TEXT = ["\x00", "before\x00after", "\ud800", "a\udfff"]


def shown(text: str) -> str:
    return ascii(text)[:30]


async def written_and_read(unit: Unit, text: str, network_id: str = "10000000001") -> list[bool]:
    """Whether each record with this text is read as it was written."""
    paid = transaction(
        network_id,
        transaction_id=text,
        reference=text,
        callback_url=text,
        client_key=text,
        party=text,
    )
    made = callback(text, url=text, body=text, signature=text)
    sent = message(text, message=text, sender_id=text)
    page = checkout(text, network_transaction_id=text)
    await unit.add_transaction(paid)
    await unit.save_callback(made)
    await unit.add_messages([sent])
    await unit.add_card_page(page)
    await unit.post(posting(reason=text, subject=text))
    await unit.add_inbox_message(text, delivery(text, headers=((text, text),)))
    await unit.add_job(job(text))
    (claimed,) = await unit.claim_due(job().due_at, 10)
    await unit.finish(claimed)
    return [
        await unit.transaction(SERVICE, text) == paid,
        await unit.callback(SERVICE, text) == made,
        list(await unit.messages(SERVICE, text)) == [sent],
        await unit.card_page(text) == page,
        (await unit.postings(SERVICE))[-1].subject == text,
        list(await unit.inbox_messages(text, Listing()))
        == [delivery(text, headers=((text, text),))],
        claimed.subject == text,
        await unit.history(HistoryQuery(SERVICE, batch_id=text)) == ([], 0),
    ]


async def test_any_text_comes_back_as_it_was(store: Store) -> None:
    for number, text in enumerate(ODD):

        async def work(unit: Unit, number: int = number, text: str = text) -> list[bool]:
            return await written_and_read(unit, text, str(10_000_000_001 + number))

        assert all(await store.run(work)), shown(text)


Read = Callable[[Unit, str], Awaitable[object]]
READS: dict[str, Read] = {
    "transaction": lambda unit, text: unit.transaction(SERVICE, text),
    "by network id": lambda unit, text: unit.transaction_by_network_id(SERVICE, text),
    "checkout": lambda unit, text: unit.card_page(text),
    "callback": lambda unit, text: unit.callback(SERVICE, text),
    "messages": lambda unit, text: unit.messages(SERVICE, text),
    "inbox": lambda unit, text: unit.inbox_messages(text, Listing()),
    "history": lambda unit, text: unit.history(HistoryQuery(SERVICE, batch_id=text)),
}


async def test_what_is_no_text_is_not_found_or_refused(store: Store) -> None:
    for text, (name, read) in product(NO_TEXT, READS.items()):

        async def find(unit: Unit, read: Read = read, text: str = text) -> object:
            return await read(unit, text)

        try:
            found = await store.run(find)
        except StoreError as error:
            assert text not in str(error)  # noqa: PT017 -- a store may do either
        else:
            assert found in (None, [], ([], 0)), name


@pytest.mark.parametrize("text", NO_TEXT, ids=shown)
async def test_what_is_no_text_is_kept_or_refused_and_nothing_else_is_harmed(
    store: Store, text: str
) -> None:
    async def work(unit: Unit) -> bool:
        await unit.post(posting("7"))
        await unit.add_card_page(checkout(text))
        return await unit.card_page(text) == checkout(text)

    try:
        kept = await store.run(work)
    except StoreError:
        kept = False
        assert list(await store.run(lambda unit: unit.postings(SERVICE))) == []
    else:
        assert kept

    assert all(await store.run(lambda unit: written_and_read(unit, "plain")))


@pytest.mark.decision("D26")
async def test_a_page_far_beyond_the_end_is_empty(store: Store) -> None:
    await store.run(lambda unit: unit.add_messages([message()]))

    for page, status in product((2**31, 2**62, 2**63, 10**400), (None, SmsStatus.ACKNOWLEDGED)):
        query = HistoryQuery(SERVICE, page=page, status=status)

        assert await store.run(methodcaller("history", query)) == ([], 1), query
