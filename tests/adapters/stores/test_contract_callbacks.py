"""Callbacks in every store: their states are kept, and waiting ones are never forgotten."""

from operator import methodcaller
from pathlib import Path

import pytest

from sandbox_sim.domain.callbacks.callbacks import Answer, Callback, Delivery, Schedule
from sandbox_sim.gateway.ports import Store
from tests.records import NOW, SERVICE, callback
from tests.sqlite_files import opened, outside

REFUSED = Answer(500, "sorry", 3)


def tried(callback_id: str, *answers: Answer) -> Callback:
    """A callback after an attempt with each of these answers."""
    made = callback(callback_id)
    for answer in answers:
        made = made.tried(answer, NOW, Schedule())
    return made


@pytest.mark.decision("D30")
@pytest.mark.parametrize(
    ("answers", "state"),
    [
        ([], Delivery.PENDING),
        ([REFUSED], Delivery.RETRYING),
        ([REFUSED, REFUSED], Delivery.RETRYING),
        ([REFUSED, REFUSED, REFUSED], Delivery.FAILED),
        ([REFUSED, Answer(200, "", 3)], Delivery.DELIVERED),
    ],
)
async def test_a_callback_comes_back_in_its_state(
    store: Store, answers: list[Answer], state: Delivery
) -> None:
    saved = tried("C1", *answers)
    await store.run(methodcaller("save_callback", saved))

    found = await store.run(lambda unit: unit.callback(SERVICE, "C1"))

    assert found == saved
    assert found is not None
    assert found.state is state


async def test_a_row_of_a_version_without_retrying_is_read_as_retrying(tmp_path: Path) -> None:
    """Such a version writes `pending` between two attempts."""
    path = tmp_path / "state.sqlite3"
    async with opened(path) as store:
        await store.run(methodcaller("save_callback", tried("C1", REFUSED)))

    outside(path, "UPDATE callbacks SET state = 'pending'")

    async with opened(path) as store:
        found = await store.run(lambda unit: unit.callback(SERVICE, "C1"))
    assert found is not None
    assert found.state is Delivery.RETRYING
