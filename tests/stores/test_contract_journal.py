"""The journal of every store keeps entries as they were written, separately for each service."""

import pytest

from sandbox_sim.ports import Store
from sandbox_sim.records.listing import Listing
from sandbox_sim.stores.memory import memory_store
from sandbox_sim.stores.sql import messages
from sandbox_sim.values.clients import ServiceMode
from tests.sample_records import NOW, SERVICE, entry
from tests.units import unit_of

WITHOUT_SERVICE = entry(
    "R2",
    service_id=None,
    operation=None,
    transaction_id=None,
    request="é \u2028 🙂".encode(),
    warnings=(),
)


async def ids(store: Store, service_id: int | None = None) -> list[str]:
    found = await unit_of(store).list_entries(Listing(service_id, None, 100))
    return [each.id for each in found]


async def test_an_entry_is_read_as_it_was_written(store: Store) -> None:
    own = [entry(mode=ServiceMode.SANDBOX), entry("R3", mode=ServiceMode.PRODUCTION)]
    odd = entry("R4", request=b"\x00\xff", path="/\udcff\x00", why="\x00", transaction_id="\x00")
    await unit_of(store).add_entries([own[0], WITHOUT_SERVICE, own[1], odd])

    strange, *found = await unit_of(store).list_entries(Listing())

    assert found == [own[1], WITHOUT_SERVICE, own[0]]
    assert (strange.id, strange.answer) == (odd.id, odd.answer)
    assert await ids(store, SERVICE) == ["R4", "R3", "R1"]


@pytest.mark.decision("D39")
class TestModes:
    """Both modes are in one list, and each mode deletes its own entries only."""

    LIVE = ServiceMode.PRODUCTION

    @pytest.fixture(autouse=True)
    async def _requests(self, store: Store) -> None:
        live = [entry("P1", mode=self.LIVE), entry("P0", mode=self.LIVE, service_id=None)]
        sandbox = [entry("S1", mode=ServiceMode.SANDBOX), WITHOUT_SERVICE]
        await unit_of(store).add_entries([live[0], *sandbox, live[1]])

    async def test_a_page_begins_after_an_entry_of_either_mode(self, store: Store) -> None:
        page = await ids(store)
        assert page == ["P0", "R2", "S1", "P1"]

        for position, name in enumerate(page, 1):
            rest = Listing(None, name, 100)
            found = await unit_of(store).list_entries(rest)
            assert [each.id for each in found] == page[position:]

    async def test_clearing_the_journal_keeps_entries_of_mode_p_and_of_other_services(
        self, store: Store
    ) -> None:
        await unit_of(store).add_entries([entry("R3", service_id=56), entry("R4")])

        assert await unit_of(store).clear_entries(SERVICE) == 2
        assert await ids(store) == ["R3", "P0", "R2", "P1"]
        assert await unit_of(store).clear_entries(None) == 2
        assert await ids(store) == ["P0", "P1"]

    @pytest.mark.parametrize("service_id", [SERVICE, None])
    async def test_resets_and_snapshots_do_not_change_entries_of_mode_p(
        self, store: Store, service_id: int | None
    ) -> None:
        taken = await unit_of(store).save_snapshot("before", service_id, NOW)
        assert taken.records["requests"] == (2 if service_id is None else 1)
        before = await ids(store)
        await unit_of(store).add_entries([entry("P2", mode=self.LIVE)])

        await unit_of(store).reset(service_id)
        left = ["P2", "P0", "P1"] if service_id is None else ["P2", "P0", "R2", "P1"]
        assert await ids(store) == left

        await unit_of(store).restore_snapshot("before", NOW)
        assert sorted(await ids(store)) == sorted(["P2", *before])

    async def test_the_newest_entries_of_each_service_and_mode_are_kept_and_the_others_counted(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in (memory_store, messages):
            monkeypatch.setattr(module, "KEPT_REQUESTS", 2)

        for service_id, last in ((SERVICE, 5), (56, 6)):
            names = [f"S{number}" for number in range(2, last)]
            await unit_of(store).add_entries([entry(name, service_id=service_id) for name in names])
        assert await ids(store, SERVICE) == ["S4", "S3", "P1"]
        assert await ids(store, 56) == ["S5", "S4"]
        await unit_of(store).add_entries([entry("P2", mode=self.LIVE)])
        await unit_of(store).add_entries([entry("P3", mode=self.LIVE)])

        assert await ids(store, SERVICE) == ["P3", "P2", "S4", "S3"]
        dropped = [await unit_of(store).dropped_entries(each) for each in (SERVICE, 56, None)]
        assert dropped == [3, 2, 5]
