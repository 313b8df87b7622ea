"""Callbacks in every store: each state is kept, and held callbacks are released in order."""

from pathlib import Path

import pytest

from sandbox_sim.ports import Store
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import CallbackRecord, DeliveryState, ReceiverResponse
from sandbox_sim.records.listing import Listing
from tests.sample_records import NOW, SERVICE, callback, every
from tests.sqlite_files import opened, outside
from tests.units import unit_of

REFUSED = ReceiverResponse(500, "später \u2028 \x00", 3)


def tried(callback_id: str, *answers: ReceiverResponse) -> CallbackRecord:
    """A callback after an attempt with each of these answers."""
    made = callback(callback_id)
    for answer in answers:
        made = made.with_attempt(answer, NOW, Behaviour().schedule)
    return made


@pytest.mark.decision("D30")
async def test_a_callback_is_read_as_it_was_saved_and_keeps_its_place(store: Store) -> None:
    saved = {
        DeliveryState.PENDING: callback("C1"),
        DeliveryState.RETRYING: tried("C2", REFUSED, REFUSED),
        DeliveryState.FAILED: tried("C3", REFUSED, REFUSED, REFUSED),
        DeliveryState.DELIVERED: tried("C4", REFUSED, ReceiverResponse(200, "", 3)),
        DeliveryState.DROPPED: callback("C5", state=DeliveryState.DROPPED, note="by override O1"),
    }
    for each in (*map(callback, ("C1", "C2", "C3", "C4", "C5")), *saved.values()):
        await unit_of(store).save_callback(each)

    assert {each.state: each for each in saved.values()} == saved
    for each in saved.values():
        assert await unit_of(store).callback(SERVICE, each.id) == each
    assert await unit_of(store).list_callbacks(every(SERVICE)) == [*saved.values()][::-1]


@pytest.mark.parametrize(
    "newer",
    [
        tried("C1", REFUSED, REFUSED),
        tried("C1", REFUSED).with_address("http://elsewhere.test/"),
        tried("C1", REFUSED).with_address("http://shop:secret@127.0.0.1/callback"),
    ],
)
async def test_a_callback_that_was_changed_since_it_was_read_is_not_replaced(
    store: Store, newer: CallbackRecord
) -> None:
    unit, answered = unit_of(store), ReceiverResponse(200, "", 3)
    read = tried("C1", REFUSED).with_address("http://shop:another@127.0.0.1/callback")
    attempted = read.with_attempt(answered, NOW, Behaviour().schedule)
    await unit.save_callback(newer)

    assert not await unit.save_callback(attempted, before=read)
    assert await unit.callback(SERVICE, "C1") == newer

    await unit.save_callback(read)
    assert await unit.save_callback(attempted, before=read)
    assert await unit.callback(SERVICE, "C1") == attempted


async def test_a_row_of_a_version_without_retrying_is_read_as_retrying(tmp_path: Path) -> None:
    """An older version writes `pending` between two attempts."""
    path = tmp_path / "state.sqlite3"
    async with opened(path) as store:
        await unit_of(store).save_callback(tried("C1", REFUSED))

    outside(path, "UPDATE callbacks SET state = 'pending'")

    async with opened(path) as store:
        assert await unit_of(store).callback(SERVICE, "C1") == tried("C1", REFUSED)


async def test_held_callbacks_of_a_service_are_released_up_to_a_given_one(store: Store) -> None:
    unit = unit_of(store)
    for name in ("C1", "C2", "C3", "C4", "C5"):
        await unit.save_callback(callback(name, held=name != "C3"))
    await unit.save_callback(callback("other", service_id=56, held=True))
    assert sorted(await unit.services_with_held_callbacks()) == [55, 56]

    assert await unit.release_callbacks(SERVICE, "unknown") == []
    assert await unit.release_callbacks(SERVICE, "C3") == ["C1", "C2"]
    assert await unit.release_callbacks(SERVICE, "C3") == []
    held = [each.id for each in await unit.list_callbacks(Listing()) if each.held]
    assert sorted(held) == ["C4", "C5", "other"]

    assert await unit.release_callbacks(SERVICE, "C5") == ["C4", "C5"]
    assert list(await unit.services_with_held_callbacks()) == [56]
