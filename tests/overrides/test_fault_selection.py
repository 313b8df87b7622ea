"""The choice of a fault reads the store only if a fault matches the request."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.overrides.faults import Faults, InjectedFault
from sandbox_sim.overrides.overrides import UserRules
from sandbox_sim.ports import StoreError
from sandbox_sim.records.overrides import Match, MatchFacts, UserRule, UserRuleKind
from sandbox_sim.stores.memory.memory_store import MemoryStore
from tests.fakes import FailingStore
from tests.units import unit_of

EFFECT: Final[Mapping[str, Any]] = {"fault": {"status": 503}, "probability": 1.0, "every": 1}


class Desk:
    """Faults over a memory store. `add` adds one that applies once, to service 55."""

    def __init__(self) -> None:
        clock, ids = VirtualClock(), RandomIds(seed=1)
        self.store = FailingStore(MemoryStore(clock))
        self.rules = UserRules(self.store, clock, ids)
        self.faults = Faults(self.store, self.rules, ids)

    async def add(self, fault: Mapping[str, Any] = EFFECT["fault"]) -> UserRule:
        effect = {**EFFECT, "fault": fault}
        return await self.rules.add(UserRuleKind.FAULT, Match(service_id=55), effect, times=1)

    async def befalls(self, service_id: int) -> bool:
        return await self.faults.choose(MatchFacts(service_id)) is not None


@pytest.fixture
async def desk() -> Desk:
    desk = Desk()
    await desk.add()
    return desk


async def test_a_request_that_no_rule_is_for_asks_no_store(desk: Desk) -> None:
    desk.store.failures = 1

    assert not await desk.befalls(56)
    with pytest.raises(StoreError):
        await desk.befalls(55)


async def test_a_rule_that_is_used_up_asks_no_store_any_more(desk: Desk) -> None:
    assert await desk.befalls(55)
    desk.store.failures = 1

    assert not await desk.befalls(55)


async def test_one_for_each_second_request_leaves_the_others_alone() -> None:
    desk = Desk()
    every_second = {**EFFECT, "every": 2}
    await desk.rules.add(UserRuleKind.FAULT, Match(service_id=55), every_second, times=None)

    assert [await desk.befalls(55) for _ in range(4)] == [False, True] * 2


async def test_there_are_none_until_one_is_added() -> None:
    desk = Desk()
    assert not desk.faults.loaded

    await desk.add()

    assert desk.faults.loaded


async def test_the_next_one_applies_where_another_server_used_the_first_up() -> None:
    desk = Desk()
    first = await desk.add()
    second = await desk.add()
    await unit_of(desk.store).save_user_rule(first.counted(applied=True))

    fault = await desk.faults.choose(MatchFacts(55))

    assert fault is not None
    assert fault.decided_by == second.id


async def test_the_first_one_decides_and_every_delay_adds_up() -> None:
    desk = Desk()
    first, _, delay = [
        await desk.add(fault)
        for fault in ({"status": 503}, {"status": 500}, {"latency": {"fixed_ms": 5}})
    ]

    fault = await desk.faults.choose(MatchFacts(55))

    assert fault == InjectedFault(5, (delay.id,), first.id, 503, processed=False)
