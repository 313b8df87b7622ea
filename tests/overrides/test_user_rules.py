"""The number of rules that users may set of each kind, and their removal."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.events.waits import Waiters
from sandbox_sim.operations import Operation
from sandbox_sim.overrides import overrides
from sandbox_sim.overrides.overrides import Overrides, TooManyUserRules, UserRules
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.overrides import Match, MatchFacts, UserRule, UserRuleKind
from sandbox_sim.stores.memory.memory_store import MemoryStore
from tests.units import unit_of

pytestmark = pytest.mark.decision("D31")

OVERRIDE, FAULT = UserRuleKind


class Rules:
    """Rules over a memory store, of which there may be two of each kind."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.store = MemoryStore(self.clock)
        self.rules = UserRules(self.store, self.clock, RandomIds(seed=1))

    async def add(
        self,
        kind: UserRuleKind = OVERRIDE,
        times: int | None = None,
        effect: Mapping[str, Any] = MappingProxyType({}),
    ) -> UserRule:
        return await self.rules.add(kind, Match(service_id=55), effect, times)

    async def ids(self, kind: UserRuleKind = OVERRIDE, **listing: Any) -> list[str]:
        return [each.id for each in await self.rules.listed(kind, Listing(**listing))]


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Rules:
    monkeypatch.setattr(overrides, "MAX_USER_RULES", 2)
    return Rules()


async def test_the_limit_counts_the_rules_of_a_kind_that_are_not_used_up(rules: Rules) -> None:
    kept, used = await rules.add(), await rules.add(times=1)
    await rules.add(FAULT)
    with pytest.raises(TooManyUserRules):
        await rules.add()
    assert sorted(await rules.ids()) == sorted([kept.id, used.id])

    await unit_of(rules.store).save_user_rule(used.counted(applied=True))
    new = await rules.add()

    assert sorted(await rules.ids()) == sorted([kept.id, new.id])


async def test_rules_are_listed_in_pages_and_removed_by_kind_and_id(rules: Rules) -> None:
    older, newer = await rules.add(), await rules.add()
    assert await rules.ids(limit=1) == [newer.id]
    assert await rules.ids(limit=1, after=newer.id) == [older.id]

    assert await rules.rules.remove(FAULT, older.id) is False
    assert await rules.rules.remove(OVERRIDE, "unknown") is False
    assert await rules.ids() == [newer.id, older.id]
    assert await rules.rules.remove(OVERRIDE, older.id) is True
    assert await rules.ids() == [each.id for each in rules.rules.loaded[OVERRIDE]] == [newer.id]
    await rules.rules.clear(OVERRIDE, 55)
    assert rules.rules.loaded[OVERRIDE] == []


async def test_the_next_override_applies_if_another_server_used_up_the_first(rules: Rules) -> None:
    effect = {"outcome": {"response_code": "410"}, "delay_ms": 0, "callback": {}}
    first, second = [await rules.add(OVERRIDE, 1, effect) for _ in range(2)]
    await unit_of(rules.store).save_user_rule(first.counted(applied=True))

    overridden = Overrides(rules.store, rules.rules, Waiters(rules.clock))
    reply = await overridden.refusal(MatchFacts(55, Operation.SMS))

    assert reply is not None
    assert second.id in reply.why
