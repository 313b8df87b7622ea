"""Faults: what goes wrong with a request on purpose, by rules of users.

The effect of such a rule is `{"fault": {…}, "probability", "every"}`, where `fault` has one of
`latency`, `status` and the names of `Loss`; with a status `retry_after_s`, with a loss `processed`.
Of the rules for one request all latencies add up; of the others the newest that fires decides, and
older ones do not count the request. Source: docs/control-api.md.
"""

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sandbox_sim.domain.control.user_rules import UserRule
from sandbox_sim.domain.response_codes import Code, Reply

STATUSES: Final = (429, 500, 502, 503)
RETRY_AFTER_S: Final = 1
# Real time: no answer is held back for longer.
LONGEST_S: Final = 300
# The rule that answers and journal entries name.
NAME: Final = "fault"


class Loss(StrEnum):
    """How a client loses an answer."""

    CONNECTION_RESET = "connection_reset"
    EMPTY_RESPONSE = "empty_response"
    MALFORMED_JSON = "malformed_json"
    TIMEOUT = "timeout"


_LOST: Final[Mapping[Loss, str]] = MappingProxyType(
    {
        Loss.CONNECTION_RESET: "the answer was lost: the connection was reset",
        Loss.EMPTY_RESPONSE: "the answer was lost: the connection was closed without a byte of it",
        Loss.MALFORMED_JSON: "the answer was cut off within its JSON",
        Loss.TIMEOUT: "the answer was lost: the client was left waiting",
    }
)


class Fault(NamedTuple):
    """The fault of one request.

    latency_ms: how long its answer is held back; delayed_by: the ids of the rules that say so.
    decided_by: the id of the rule that has the `status`, or the `loss` of the answer.
    processed: whether the gateway does what is asked for.
    """

    latency_ms: float = 0
    delayed_by: tuple[str, ...] = ()
    decided_by: str | None = None
    status: int | None = None
    retry_after_s: int = RETRY_AFTER_S
    loss: Loss | None = None
    processed: bool = True

    def joined_by(self, rule: UserRule, draw: Callable[[], float]) -> "Fault":
        """The fault with what a rule does that fires."""
        effect = rule.effect
        ((name, value),) = effect["fault"].items()
        if name == "latency":
            latency_ms = min(self.latency_ms + _milliseconds(value, draw), LONGEST_S * 1000)
            return self._replace(latency_ms=latency_ms, delayed_by=(*self.delayed_by, rule.id))
        if name == "status":
            wait = effect.get("retry_after_s", RETRY_AFTER_S)
            return self._replace(
                decided_by=rule.id, status=value, retry_after_s=wait, processed=False
            )
        processed = effect.get("processed", True)
        return self._replace(decided_by=rule.id, loss=Loss(name), processed=processed)

    def refusal(self) -> Reply:
        """What is said to a request that is not processed."""
        if self.status == 429:
            why = f"fault {self.decided_by} refused it"
            return Reply(
                Code.TOO_MANY_REQUESTS, NAME, why, headers={"Retry-After": str(self.retry_after_s)}
            )
        why = f"fault {self.decided_by} kept it from being processed"
        return Reply(Code.SERVER_ERROR, NAME, why, http_status=self.status)

    def apply_to(self, reply: Reply) -> Reply:
        """The reply, saying which faults befell it."""
        warnings = reply.warnings
        if self.delayed_by:
            ids = ", ".join(self.delayed_by)
            warnings += (f"fault {ids} held the answer back for {self.latency_ms:g} ms",)
        if self.loss is None:
            return reply._replace(warnings=warnings)
        why = reply.why
        if self.processed:
            why = f"fault {self.decided_by} struck the answer of rule {reply.rule}: {why}"
        return reply._replace(rule=NAME, why=why, warnings=(*warnings, _LOST[self.loss]))


def is_latency(rule: UserRule) -> bool:
    """Whether it only holds the answer back."""
    return "latency" in rule.effect["fault"]


def fires(rule: UserRule, draw: Callable[[], float]) -> bool:
    """Whether a rule applies to one more request that it is for.

    draw: gives a random number, at least 0 and below 1.
    """
    every: int = rule.effect["every"]
    probability: float = rule.effect["probability"]
    return (rule.seen + 1) % every == 0 and draw() < probability


def _milliseconds(latency: Mapping[str, Any], draw: Callable[[], float]) -> float:
    match latency:
        case {"uniform_ms": (low, high)}:
            return float(low + (high - low) * draw())
        case {"lognormal_ms": {"median": median, "sigma": sigma}}:
            # Two uniform numbers make a normal one (Box and Muller).
            normal = math.sqrt(-2 * math.log(1 - draw())) * math.cos(2 * math.pi * draw())
            return float(median * math.exp(sigma * normal))
    return float(latency["fixed_ms"])
