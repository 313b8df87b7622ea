"""The effects of a fault on a request and its answer, and the choice among several faults."""

import math
import random
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, Final

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.overrides.faults import AnswerFault, Faults, InjectedFault, fires
from sandbox_sim.overrides.overrides import UserRules
from sandbox_sim.ports import StoreError
from sandbox_sim.records.overrides import Match, MatchFacts, UserRule, UserRuleKind
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.values.response_codes import Reply
from tests.fakes import FailingStore
from tests.sample_records import rule
from tests.units import unit_of

ACCEPTED = Reply("202", "sandbox.3", "allowlisted number", awaited_by="10000000001")


def fault_rule(
    fault: dict[str, Any], *, times: int | None = None, rule_id: str = "F1", **effect: Any
) -> UserRule:
    plain = {"fault": fault, "probability": 1.0, "every": 1}
    return rule(rule_id, kind=UserRuleKind.FAULT, effect={**plain, **effect}, times=times)


def injected(
    fault: dict[str, Any], draw: Callable[[], float] = lambda: 0.5, **effect: Any
) -> InjectedFault:
    return InjectedFault().with_rule(fault_rule(fault, **effect), draw)


def applications(each: UserRule, requests: int) -> list[bool]:
    """For each of this many requests, whether the fault applies."""
    fired = []
    for _ in range(requests):
        fired.append(fires(each, lambda: 0.5))
        each = each.counted(applied=fired[-1])
    return fired


def test_a_fault_applies_to_every_request_or_every_third_or_by_probability() -> None:
    assert applications(fault_rule({"timeout": True}), 3) == [True] * 3
    assert applications(fault_rule({"timeout": True}, every=3), 7) == [False, False, True] * 2 + [
        False
    ]
    chances = ((1, 0.999, True), (0, 0.0, False), (0.5, 0.499, True), (0.5, 0.5, False))
    for probability, drawn, fired in chances:
        rule = fault_rule({"timeout": True}, probability=probability)
        assert fires(rule, lambda drawn=drawn: drawn) is fired  # type: ignore[misc]


class TestLatency:
    @pytest.mark.parametrize(
        ("latency", "drawn", "ms"),
        [
            ({"fixed_ms": 200}, 0.7, 200),
            ({"uniform_ms": [50, 300]}, 0.0, 50),
            ({"uniform_ms": [50, 300]}, 0.5, 175),
            ({"lognormal_ms": {"median": 90, "sigma": 0}}, 0.7, 90),
            ({"lognormal_ms": {"median": 90, "sigma": 0.4}}, 0.0, 90),
            ({"lognormal_ms": {"median": 300_000, "sigma": 10}}, 0.99, 300_000),
        ],
    )
    def test_a_latency_is_fixed_uniform_or_lognormal(
        self, latency: dict[str, Any], drawn: float, ms: float
    ) -> None:
        assert injected({"latency": latency}, lambda: drawn).latency_ms == pytest.approx(ms)

    def test_half_of_the_lognormal_latencies_are_longer_than_the_median(self) -> None:
        draw = random.Random(1).random
        latency = {"lognormal_ms": {"median": 90, "sigma": 0.4}}

        drawn = [injected({"latency": latency}, draw).latency_ms for _ in range(2000)]

        assert median(drawn) == pytest.approx(90, rel=0.05)
        within = [90 * math.exp(-0.4) < ms < 90 * math.exp(0.4) for ms in drawn]
        assert sum(within) / 2000 == pytest.approx(0.68, abs=0.03)

    def test_latencies_add_up_and_do_not_change_the_rule_of_the_answer(self) -> None:
        other = fault_rule({"latency": {"fixed_ms": 50.5}}, rule_id="F2")
        fault = injected({"latency": {"fixed_ms": 200}}).with_rule(other, lambda: 0.5)

        assert (fault.latency_ms, fault.processed) == (250.5, True)
        assert fault.apply_to(ACCEPTED) == ACCEPTED._replace(
            warnings=("fault F1, F2 delayed the answer by 250.5 ms",)
        )


def test_a_fault_refuses_a_request_with_status_429_or_a_server_error() -> None:
    fault = injected({"status": 429})
    assert not fault.processed
    assert fault.refusal()._replace(why="") == Reply(
        "429", "fault", "", headers={"Retry-After": "1"}
    )
    assert injected({"status": 429}, retry_after_s=7).refusal().headers == {"Retry-After": "7"}

    for status in (500, 502, 503):
        fault = injected({"status": status})
        reply = fault.refusal()
        assert (reply.code, reply.http_status, reply.rule) == ("500", status, "fault")
        assert "F1" in reply.why
        assert fault.apply_to(reply) == reply


@pytest.mark.parametrize("loss", AnswerFault)
def test_a_fault_loses_an_answer_after_or_instead_of_the_processing(loss: AnswerFault) -> None:
    fault = injected({loss.value: True})
    reply = fault.apply_to(ACCEPTED)

    assert (fault.processed, fault.answer_fault) == (True, loss)
    assert reply._replace(why="", warnings=()) == ACCEPTED._replace(rule="fault", why="")
    assert reply.why == "fault F1 affected the answer of rule sandbox.3: allowlisted number"
    assert "the answer was" in reply.warnings[0]

    fault = injected({loss.value: True}, processed=False)
    reply = fault.apply_to(fault.refusal())

    assert not fault.processed
    assert (reply.code, reply.rule) == ("500", "fault")
    assert reply.why == "fault F1 stopped the processing of the request"


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

    async def applies(self, service_id: int) -> bool:
        return await self.faults.choose(MatchFacts(service_id)) is not None


async def test_the_store_is_read_only_if_a_fault_that_is_not_used_up_matches() -> None:
    desk = Desk()
    assert not desk.faults.loaded
    await desk.add()
    assert desk.faults.loaded

    desk.store.failures = 1
    assert not await desk.applies(56)
    with pytest.raises(StoreError):
        await desk.applies(55)
    assert await desk.applies(55)
    desk.store.failures = 1
    assert not await desk.applies(55)


async def test_a_fault_for_every_second_request_does_not_affect_the_others() -> None:
    desk = Desk()
    every_second = {**EFFECT, "every": 2}
    await desk.rules.add(UserRuleKind.FAULT, Match(service_id=55), every_second, times=None)

    assert [await desk.applies(55) for _ in range(4)] == [False, True] * 2


async def test_the_next_fault_applies_if_another_server_used_up_the_first() -> None:
    desk = Desk()
    first = await desk.add()
    second = await desk.add()
    await unit_of(desk.store).save_user_rule(first.counted(applied=True))

    fault = await desk.faults.choose(MatchFacts(55))

    assert fault is not None
    assert fault.decided_by == second.id


async def test_the_first_fault_decides_and_every_latency_adds_up() -> None:
    desk = Desk()
    first, _, delay = [
        await desk.add(fault)
        for fault in ({"status": 503}, {"status": 500}, {"latency": {"fixed_ms": 5}})
    ]

    fault = await desk.faults.choose(MatchFacts(55))

    assert fault == InjectedFault(5, (delay.id,), first.id, 503, processed=False)
