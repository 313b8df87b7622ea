"""All inboxes together have a limit in bytes; the oldest delivery of all is deleted first."""

import pytest

from sandbox_sim.ports import Store, Unit
from sandbox_sim.records import inbox
from sandbox_sim.records.inbox import InboxMessage
from sandbox_sim.records.listing import Listing
from tests.sample_records import NOW, delivery
from tests.units import unit_of

LARGE = "x" * 100_000


def large(name: str, body: str = LARGE) -> InboxMessage:
    return delivery(body, id=name)


@pytest.fixture(autouse=True)
def bound(monkeypatch: pytest.MonkeyPatch) -> int:
    """A limit of three large deliveries."""
    bound = 3 * inbox.size_of(large("D"))
    monkeypatch.setattr(inbox, "KEPT_INBOX_BYTES", bound)
    return bound


async def deliver(store: Store, name: str, *messages: InboxMessage) -> None:
    for message in messages:
        await unit_of(store).add_inbox_message(name, message)


async def ids(store: Store, name: str) -> list[str]:
    found = await unit_of(store).inbox_messages(name, Listing(limit=1000))
    return [message.id for message in found]


async def kept_bytes(store: Store, *names: str) -> int:
    found = [await unit_of(store).inbox_messages(name, Listing(limit=1000)) for name in names]
    return sum(inbox.size_of(message) for messages in found for message in messages)


async def test_the_oldest_of_all_inboxes_goes_first(store: Store) -> None:
    await deliver(store, "a", large("D1"))
    await deliver(store, "b", large("D2"))
    await deliver(store, "c", large("D3"), large("D4"))
    assert [await ids(store, name) for name in "abc"] == [[], ["D2"], ["D4", "D3"]]

    await deliver(store, "a", large("D5"))
    assert [await ids(store, name) for name in "abc"] == [["D5"], [], ["D4", "D3"]]


async def test_as_many_as_it_takes(store: Store) -> None:
    for number in range(10):
        await deliver(store, f"box {number}", delivery("small", id=f"S{number}"))
    await deliver(store, "a", large("D1"), large("D2"))

    await deliver(store, "b", large("D3", LARGE[:-1000]))

    left = [await ids(store, f"box {number}") for number in range(10)]
    assert left[0] == []
    assert (await ids(store, "a"), await ids(store, "b")) == (["D2", "D1"], ["D3"])


async def test_however_many_inboxes_there_are(store: Store, bound: int) -> None:
    for number in range(50):
        await deliver(store, f"box {number}", delivery("x" * 10_000, id=f"D{number}"))

    names = [f"box {number}" for number in range(50)]
    kept = await kept_bytes(store, *names)
    assert bound - 12_000 < kept <= bound
    assert await ids(store, "box 49") == ["D49"]


async def test_characters_that_take_four_bytes_count_as_four(store: Store, bound: int) -> None:
    wide = "🧾" + "x" * (len(LARGE) - 1)

    await deliver(store, "a", large("D1"), large("D2", wide))

    assert inbox.size_of(large("D2", wide)) > 3.9 * len(wide)
    assert await ids(store, "a") == [], "which alone is more than is kept"
    assert await kept_bytes(store, "a") <= bound


async def test_what_was_cleared_leaves_room(store: Store) -> None:
    await deliver(store, "a", large("D1"))
    for _ in range(3):
        await deliver(store, "b", large("D2"), large("D3"))
        assert await unit_of(store).clear_inbox("b") == 2

    assert await ids(store, "a") == ["D1"]


async def test_so_does_what_a_reset_forgot(store: Store) -> None:
    await deliver(store, "a", large("D1"), large("D2"))
    await unit_of(store).reset(None)

    await deliver(store, "a", large("D3"), large("D4"), large("D5"))

    assert await ids(store, "a") == ["D5", "D4", "D3"]


async def test_what_a_snapshot_brings_back_counts(store: Store) -> None:
    await deliver(store, "a", large("D1"), large("D2"))
    await unit_of(store).save_snapshot("before", None, NOW)
    await unit_of(store).reset(None)
    await deliver(store, "b", large("D3"))
    await unit_of(store).restore_snapshot("before", NOW)
    assert (await ids(store, "a"), await ids(store, "b")) == (["D2", "D1"], [])

    await deliver(store, "b", large("D4"), large("D5"))

    assert (await ids(store, "a"), await ids(store, "b")) == (["D2"], ["D5", "D4"])


async def test_what_made_room_is_back_if_the_unit_fails(store: Store) -> None:
    await deliver(store, "a", large("D1"))
    await deliver(store, "b", large("D2"), large("D3"))

    async def fails(unit: Unit) -> None:
        for name in ("D4", "D5"):
            await unit.add_inbox_message("a", large(name))
        await unit.clear_inbox("b")
        raise LookupError

    with pytest.raises(LookupError):
        await store.run(fails)

    assert (await ids(store, "a"), await ids(store, "b")) == (["D1"], ["D3", "D2"])
    await deliver(store, "c", large("D6"))
    assert [await ids(store, name) for name in "abc"] == [[], ["D3", "D2"], ["D6"]]
