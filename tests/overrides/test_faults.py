"""What a fault does to a request and its answer."""

import math
import random
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest

from sandbox_sim.overrides.faults import AnswerFault, InjectedFault, fires
from sandbox_sim.records.overrides import UserRule, UserRuleKind
from sandbox_sim.values.response_codes import Reply
from tests.sample_records import rule

ACCEPTED = Reply("202", "sandbox.3", "allowlisted number", awaited_by="10000000001")


def fault_rule(
    fault: dict[str, Any], *, times: int | None = None, rule_id: str = "F1", **effect: Any
) -> UserRule:
    plain = {"fault": fault, "probability": 1.0, "every": 1}
    return rule(rule_id, kind=UserRuleKind.FAULT, effect={**plain, **effect}, times=times)


def befallen(
    fault: dict[str, Any], draw: Callable[[], float] = lambda: 0.5, **effect: Any
) -> InjectedFault:
    return InjectedFault().with_rule(fault_rule(fault, **effect), draw)


def met(each: UserRule, requests: int) -> list[bool]:
    """For each of this many requests, whether the fault applies."""
    fired = []
    for _ in range(requests):
        fired.append(fires(each, lambda: 0.5))
        each = each.counted(applied=fired[-1])
    return fired


def test_each_request_gets_it_and_with_every_each_third() -> None:
    assert met(fault_rule({"timeout": True}), 3) == [True] * 3
    assert met(fault_rule({"timeout": True}, every=3), 7) == [False, False, True] * 2 + [False]


@pytest.mark.parametrize(
    ("probability", "drawn", "fired"),
    [(1, 0.999, True), (0, 0.0, False), (0.5, 0.499, True), (0.5, 0.5, False)],
)
def test_chance_decides(probability: float, drawn: float, fired: bool) -> None:
    assert fires(fault_rule({"timeout": True}, probability=probability), lambda: drawn) is fired


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
    def test_how_long(self, latency: dict[str, Any], drawn: float, ms: float) -> None:
        assert befallen({"latency": latency}, lambda: drawn).latency_ms == pytest.approx(ms)

    def test_half_of_the_lognormal_ones_are_longer_than_the_median(self) -> None:
        draw = random.Random(1).random
        latency = {"lognormal_ms": {"median": 90, "sigma": 0.4}}

        drawn = [befallen({"latency": latency}, draw).latency_ms for _ in range(2000)]

        assert median(drawn) == pytest.approx(90, rel=0.05)
        within = [90 * math.exp(-0.4) < ms < 90 * math.exp(0.4) for ms in drawn]
        assert sum(within) / 2000 == pytest.approx(0.68, abs=0.03)

    def test_several_add_up_and_leave_the_rule_of_the_answer_alone(self) -> None:
        other = fault_rule({"latency": {"fixed_ms": 50.5}}, rule_id="F2")
        fault = befallen({"latency": {"fixed_ms": 200}}).with_rule(other, lambda: 0.5)

        assert (fault.latency_ms, fault.processed) == (250.5, True)
        assert fault.apply_to(ACCEPTED) == ACCEPTED._replace(
            warnings=("fault F1, F2 delayed the answer by 250.5 ms",)
        )


class TestRefusal:
    def test_too_many_requests(self) -> None:
        fault = befallen({"status": 429})

        assert not fault.processed
        assert fault.refusal()._replace(why="") == Reply(
            "429", "fault", "", headers={"Retry-After": "1"}
        )
        assert befallen({"status": 429}, retry_after_s=7).refusal().headers == {"Retry-After": "7"}

    @pytest.mark.parametrize("status", [500, 502, 503])
    def test_a_broken_server(self, status: int) -> None:
        reply = befallen({"status": status}).refusal()

        assert (reply.code, reply.http_status, reply.rule) == ("500", status, "fault")
        assert "F1" in reply.why

    def test_it_is_told_as_it_is(self) -> None:
        fault = befallen({"status": 500})

        assert fault.apply_to(fault.refusal()) == fault.refusal()


@pytest.mark.parametrize("loss", AnswerFault)
class TestLoss:
    def test_the_request_is_processed_and_the_journal_says_what_was_lost(
        self, loss: AnswerFault
    ) -> None:
        fault = befallen({loss.value: True})
        told = fault.apply_to(ACCEPTED)

        assert (fault.processed, fault.answer_fault) == (True, loss)
        assert told._replace(why="", warnings=()) == ACCEPTED._replace(rule="fault", why="")
        assert told.why == "fault F1 affected the answer of rule sandbox.3: allowlisted number"
        assert "the answer was" in told.warnings[0]

    def test_or_it_never_arrives(self, loss: AnswerFault) -> None:
        fault = befallen({loss.value: True}, processed=False)
        told = fault.apply_to(fault.refusal())

        assert not fault.processed
        assert (told.code, told.rule) == ("500", "fault")
        assert told.why == "fault F1 stopped the processing of the request"
