"""Overrides in every store: they are saved with their transaction, and they hold callbacks back."""

from collections.abc import Sequence

import pytest

from sandbox_sim.ports import Store, Unit
from sandbox_sim.records.callbacks import CallbackRecord, DeliveryState, Profile
from sandbox_sim.records.overrides import CallbackBehaviour, Override
from sandbox_sim.records.transactions import Status
from tests.sample_records import SERVICE, callback, transaction
from tests.units import unit_of

EVERYTHING = Override(
    "O1",
    Status.CANCELLED,
    "202",
    500,
    CallbackBehaviour(duplicate=3, delay_ms=20, bad_signature=True, profile=Profile.FLAT),
)


@pytest.mark.parametrize("override", [EVERYTHING, Override("O1"), None])
async def test_a_transaction_keeps_its_override(store: Store, override: Override | None) -> None:
    kept = transaction(override=override)

    await unit_of(store).add_transaction(kept)

    assert await unit_of(store).transaction(SERVICE, "T1") == kept


async def test_a_callback_keeps_its_note(store: Store) -> None:
    kept = callback(state=DeliveryState.DROPPED, note="override O1 dropped it")

    await unit_of(store).save_callback(kept)

    assert await unit_of(store).callback(SERVICE, "C1") == kept


class TestHeldBack:
    @pytest.fixture(autouse=True)
    async def _some(self, store: Store) -> None:
        unit = unit_of(store)
        for name in "C1", "C2", "C3", "C4":
            await unit.save_callback(callback(name, held=name != "C3"))
        await unit.save_callback(callback("other", service_id=56, held=True))
        await unit.save_callback(callback("C5", held=True))

    async def held(self, store: Store) -> Sequence[str]:
        async def work(unit: Unit) -> Sequence[CallbackRecord | None]:
            names = "C1", "C2", "C3", "C4", "C5", "other"
            return [await unit.callback(None, name) for name in names]

        return [each.id for each in await store.run(work) if each is not None and each.held]

    async def test_those_before_one_of_the_service_are_let_go(self, store: Store) -> None:
        assert await unit_of(store).release_callbacks(SERVICE, "C3") == ["C1", "C2"]

        assert await self.held(store) == ["C4", "C5", "other"]
        assert await unit_of(store).release_callbacks(SERVICE, "C3") == []

    async def test_and_it_too_if_it_is_held(self, store: Store) -> None:
        assert await unit_of(store).release_callbacks(SERVICE, "C4") == [
            "C1",
            "C2",
            "C4",
        ]

    async def test_none_is_let_go_by_one_that_is_not_there(self, store: Store) -> None:
        assert await unit_of(store).release_callbacks(SERVICE, "gone") == []

    async def test_it_is_told_which_services_have_any(self, store: Store) -> None:
        assert sorted(await unit_of(store).services_with_held_callbacks()) == [55, 56]

        await unit_of(store).release_callbacks(SERVICE, "C5")

        assert list(await unit_of(store).services_with_held_callbacks()) == [56]
