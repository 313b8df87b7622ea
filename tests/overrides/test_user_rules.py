"""How many rules users may set of each kind, and how they are taken out."""

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.overrides import overrides
from sandbox_sim.overrides.overrides import TooManyUserRules, UserRules
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.overrides import Match, UserRule, UserRuleKind
from sandbox_sim.stores.memory.memory_store import MemoryStore

pytestmark = pytest.mark.decision("D31")

OVERRIDE, FAULT = UserRuleKind


class Rules:
    """Rules over a memory store, of which there may be two of each kind."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self.store = MemoryStore(clock)
        self.rules = UserRules(self.store, clock, RandomIds(seed=1))

    async def add(self, kind: UserRuleKind = OVERRIDE, times: int | None = None) -> UserRule:
        return await self.rules.add(kind, Match(service_id=55), {}, times)

    async def ids(self, kind: UserRuleKind = OVERRIDE) -> list[str]:
        return [each.id for each in await self.rules.listed(kind, Listing())]


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Rules:
    monkeypatch.setattr(overrides, "MAX_USER_RULES", 2)
    return Rules()


async def test_there_are_so_many_of_a_kind_and_no_more(rules: Rules) -> None:
    kept = [(await rules.add()).id for _ in range(2)]
    await rules.add(FAULT)

    with pytest.raises(TooManyUserRules):
        await rules.add()

    assert sorted(await rules.ids()) == sorted(kept)


async def test_what_is_used_up_makes_room(rules: Rules) -> None:
    kept, used = await rules.add(), await rules.add(times=1)
    await rules.store.run(lambda unit: unit.save_user_rule(used.counted(applied=True)))

    new = await rules.add()

    assert sorted(await rules.ids()) == sorted([kept.id, new.id])


async def test_one_is_removed_by_its_kind_and_id(rules: Rules) -> None:
    one = await rules.add()

    assert not await rules.rules.remove(FAULT, one.id)
    assert not await rules.rules.remove(OVERRIDE, "unknown")
    assert await rules.ids() == [one.id]
    assert await rules.rules.remove(OVERRIDE, one.id) is True
    assert await rules.ids() == []
