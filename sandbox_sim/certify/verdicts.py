"""What a run finds: a verdict on each case, with all that happened in it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, NamedTuple

from sandbox_sim.certify.cases import CertifyCase

Party = Literal["application", "gateway", "certify"]


class CaseVerdict(StrEnum):
    """The verdict on a case. Only the first and the last let a run succeed."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "not applicable"


class TimelineEvent(NamedTuple):
    """Something that happened. at: real time since the case began; gateway_time: that of ours.

    source, target: who sent it to whom; the same party where nothing was sent.
    """

    at: timedelta
    gateway_time: datetime
    source: Party
    target: Party
    text: str


class Result(NamedTuple):
    """The verdict on a case. reason: why it is not passed; empty where it is."""

    case: CertifyCase
    verdict: CaseVerdict
    reason: str
    took: timedelta
    events: Sequence[TimelineEvent] = ()

    @property
    def is_good(self) -> bool:
        """Whether the case passed or does not apply."""
        return self.verdict in {CaseVerdict.PASSED, CaseVerdict.NOT_APPLICABLE}


class Run(NamedTuple):
    """All results of a run. seed: of the order of the cases; None where that is by name."""

    results: Sequence[Result]
    seed: int | None
    took: timedelta

    def count(self, verdict: CaseVerdict) -> int:
        """How many cases have this verdict."""
        return sum(each.verdict is verdict for each in self.results)

    @property
    def succeeded(self) -> bool:
        """Whether every case passed or does not apply."""
        return all(each.is_good for each in self.results)
