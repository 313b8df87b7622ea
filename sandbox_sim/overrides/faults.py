"""Faults: failures that users inject into requests. Chooses those of a request and counts them.

The effect of such a rule is `{"fault": {…}, "probability", "every"}`. `fault` has one of `latency`,
`status` and the names of `AnswerFault`. A status may have `retry_after_s`, an answer fault
`processed`. Of the rules that match a request, all latencies add up. Of the others the first by
`records.overrides.in_order` that fires decides, and those after it do not count the request.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from sandbox_sim.overrides.overrides import UserRules, count_match, lock_if_open
from sandbox_sim.ports import Ids, Store, Unit
from sandbox_sim.records.overrides import MatchFacts, UserRule, UserRuleKind
from sandbox_sim.values.response_codes import Code, Reply

FAULT_STATUSES: Final = (429, 500, 502, 503)

RETRY_AFTER_S: Final = 1

# The longest delay of an answer, in seconds of real time.
MAX_LATENCY_S: Final = 300

# The name in `X-Sandbox-Rule` and in the journal.
FAULT_RULE: Final = "fault"


class AnswerFault(StrEnum):
    """What goes wrong with the answer."""

    CONNECTION_RESET = "connection_reset"
    EMPTY_RESPONSE = "empty_response"
    MALFORMED_JSON = "malformed_json"
    TIMEOUT = "timeout"


# How the warning about an answer that did not reach the client begins.
ANSWER_LOST: Final = "the answer was lost"

_EFFECTS: Final[Mapping[AnswerFault, str]] = {
    AnswerFault.CONNECTION_RESET: f"{ANSWER_LOST}: the connection was reset",
    AnswerFault.EMPTY_RESPONSE: f"{ANSWER_LOST}: the connection was closed before its first byte",
    AnswerFault.MALFORMED_JSON: "the answer was cut off within its JSON",
    AnswerFault.TIMEOUT: f"{ANSWER_LOST}: nothing was sent, and the connection stayed open",
}


class InjectedFault(NamedTuple):
    """The combined fault of one request.

    latency_ms: the delay of its answer; delayed_by: the ids of the rules that delay it.
    decided_by: the id of the rule that set `status` or `answer_fault`.
    processed: whether the gateway processes the request.
    """

    latency_ms: float = 0
    delayed_by: tuple[str, ...] = ()
    decided_by: str | None = None
    status: int | None = None
    retry_after_s: int = RETRY_AFTER_S
    answer_fault: AnswerFault | None = None
    processed: bool = True

    def with_rule(self, rule: UserRule, draw: Callable[[], float]) -> "InjectedFault":
        """The fault, with the effect of a rule that fires added."""
        effect = rule.effect
        ((name, value),) = effect["fault"].items()
        if name == "latency":
            latency_ms = min(self.latency_ms + _milliseconds(value, draw), MAX_LATENCY_S * 1000)
            return self._replace(latency_ms=latency_ms, delayed_by=(*self.delayed_by, rule.id))
        if name == "status":
            wait = effect.get("retry_after_s", RETRY_AFTER_S)
            return self._replace(
                decided_by=rule.id, status=value, retry_after_s=wait, processed=False
            )
        processed = effect.get("processed", True)
        return self._replace(
            decided_by=rule.id, answer_fault=AnswerFault(name), processed=processed
        )

    def refusal(self) -> Reply:
        """The reply to a request that is not processed."""
        if self.status == 429:
            why = f"fault {self.decided_by} refused the request"
            return Reply(
                Code.TOO_MANY_REQUESTS,
                FAULT_RULE,
                why,
                headers={"Retry-After": str(self.retry_after_s)},
            )
        why = f"fault {self.decided_by} stopped the processing of the request"
        return Reply(Code.SERVER_ERROR, FAULT_RULE, why, http_status=self.status)

    def apply_to(self, reply: Reply) -> Reply:
        """The reply, with `why` and `warnings` that name the faults."""
        warnings = reply.warnings
        if self.delayed_by:
            ids = ", ".join(self.delayed_by)
            warnings += (f"fault {ids} delayed the answer by {self.latency_ms:g} ms",)
        if self.answer_fault is None:
            return reply._replace(warnings=warnings)
        why = reply.why
        if self.processed:
            why = f"fault {self.decided_by} affected the answer of rule {reply.rule}: {why}"
        return reply._replace(
            rule=FAULT_RULE, why=why, warnings=(*warnings, _EFFECTS[self.answer_fault])
        )


def is_latency(rule: UserRule) -> bool:
    """Whether the rule only delays the answer."""
    return "latency" in rule.effect["fault"]


def fires(rule: UserRule, draw: Callable[[], float]) -> bool:
    """Whether a rule applies to one more request that it matches.

    draw: returns a random number, at least 0 and below 1.
    """
    every: int = rule.effect["every"]
    probability: float = rule.effect["probability"]
    return (rule.seen + 1) % every == 0 and draw() < probability


def _milliseconds(latency: Mapping[str, Any], draw: Callable[[], float]) -> float:
    match latency:
        case {"uniform_ms": (low, high)}:
            return float(low + (high - low) * draw())
        case {"lognormal_ms": {"median": median, "sigma": sigma}}:
            # Turns two uniform numbers into a normal one (Box-Muller transform).
            normal = math.sqrt(-2 * math.log(1 - draw())) * math.cos(2 * math.pi * draw())
            return float(median * math.exp(sigma * normal))
    return float(latency["fixed_ms"])


class Faults:
    """Applies the user rules of kind `FAULT`.

    loaded: all of them; requests skip `choose` while it is empty.
    """

    def __init__(self, store: Store, rules: UserRules, ids: Ids) -> None:
        self._store = store
        self._rules = rules
        self._ids = ids
        self.loaded: Sequence[UserRule] = rules.loaded[UserRuleKind.FAULT]

    async def choose(self, request: MatchFacts) -> InjectedFault | None:
        """The fault for a request, or None. Its use is counted for all servers."""
        rules = self._rules.for_request(UserRuleKind.FAULT, request)
        if not rules:
            return None
        fault = await self._store.run(lambda unit: self._combined(unit, rules))
        return None if fault == InjectedFault() else fault

    async def _combined(self, unit: Unit, rules: Sequence[UserRule]) -> InjectedFault:
        """The combined fault of the rules that fire.

        It locks the rules in the order of `in_order`, as all units do, so no two units deadlock.
        """
        fault = InjectedFault()
        for loaded in rules:
            if fault.decided_by is not None and not is_latency(loaded):
                continue
            rule = await lock_if_open(unit, loaded)
            if rule is None:
                continue
            applied = fires(rule, self._ids.draw)
            await count_match(unit, rule, applied=applied)
            if applied:
                fault = fault.with_rule(rule, self._ids.draw)
        return fault
