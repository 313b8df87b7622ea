"""The results of a run: a verdict on each case, with its events in order."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from sandbox_sim.certify.application import ApplicationTime
from sandbox_sim.certify.cases import CertifyCase

if TYPE_CHECKING:
    from sandbox_sim.testing import Request, SandboxGateway

# The ids of overrides and faults, which the case itself made; they are left out of texts.
_ID: Final = re.compile(r"\b(override|fault) [0-9a-f]{32}")
Party = Literal["application", "gateway", "certify"]


class CaseVerdict(StrEnum):
    """The verdict on a case. Only the first and the last let a run succeed."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "not applicable"


class TimelineEvent(NamedTuple):
    """An event. at: real time since the case began; gateway_time: the time of the gateway.

    source, target: the sender and the receiver; the same party if nothing was sent.
    """

    at: timedelta
    gateway_time: datetime
    source: Party
    target: Party
    text: str


class Result(NamedTuple):
    """The verdict on a case. reason: why it did not pass; empty if it passed.

    alone: why it could not run beside others; empty if it could, or if cases run one by one.
    uncounted: what the case counts and could not, and why; empty if it could.
    """

    case: CertifyCase
    verdict: CaseVerdict
    reason: str
    took: timedelta = timedelta()
    events: Sequence[TimelineEvent] = ()
    alone: str = ""
    uncounted: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the case passed or does not apply."""
        return self.verdict in {CaseVerdict.PASSED, CaseVerdict.NOT_APPLICABLE}


class Run(NamedTuple):
    """All results of a run. seed: shuffled the cases; None if they ran by name."""

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


class SeenRequest(NamedTuple):
    """A request to the gateway. It came between these real times since the case began."""

    after: timedelta
    before: timedelta
    request: "Request"


class CaseTimeline:
    """The events of one case. `update` adds what is new at the gateway."""

    def __init__(self, gateway: "SandboxGateway", time: ApplicationTime) -> None:
        self._gateway = gateway
        self._time = time
        self._begun = time.monotonic()
        self._seen: set[str] = set()
        self._requests: list[SeenRequest] = []
        self._updated = timedelta()
        self.events: list[TimelineEvent] = []

    @property
    def elapsed(self) -> timedelta:
        """The time of the application since the case began."""
        return timedelta(seconds=self._time.monotonic() - self._begun)

    def note(self, source: Party, target: Party, text: str) -> None:
        """Add an event that happens now."""
        self.events.append(TimelineEvent(self.elapsed, self._gateway.now, source, target, text))

    def update(self) -> None:
        """Add the new requests to the gateway, and the callbacks that were answered.

        A callback goes before requests of the same moment: they may follow from it.
        """
        now = self.elapsed
        new = [*self._new_callbacks(now), *self._new_requests(now)]
        self.events += sorted(new, key=attrgetter("gateway_time"))
        self._updated = now

    def requests(self, operation: str) -> Sequence[SeenRequest]:
        """The requests for an operation, oldest first."""
        return [each for each in self._requests if each.request.operation == operation]

    def _new_requests(self, now: timedelta) -> Iterator[TimelineEvent]:
        found, before = self._gateway.requests, self.elapsed
        for request in found:
            if self._is_new(request.id):
                self._requests.append(SeenRequest(self._updated, before, request))
                yield TimelineEvent(now, request.at, "application", "gateway", _summary(request))
                yield TimelineEvent(now, request.at, "gateway", "application", _outcome(request))

    def _new_callbacks(self, now: timedelta) -> Iterator[TimelineEvent]:
        for callback in self._gateway.callbacks:
            prefix = f"callback {callback.transaction_id}, status {callback.status}"
            for attempt in callback.attempts:
                if self._is_new(f"{callback.id}/{attempt.number}"):
                    text = f"{prefix}: {attempt.verdict}"
                    yield TimelineEvent(now, attempt.at, "gateway", "application", text)

    def _is_new(self, key: str) -> bool:
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new


def _summary(request: "Request") -> str:
    return " ".join(filter(None, (request.operation or request.path, request.transaction_id)))


def _outcome(request: "Request") -> str:
    inner = ""
    if request.operation == "status" and isinstance(request.answer, dict):
        record = request.answer.get("response_data")
        inner = f", status {record['status']} inside" if isinstance(record, dict) else ""
    effects = request.warnings[-1:] if request.rule == "fault" else ()
    why = _ID.sub(r"\1", "; ".join((request.why, *effects)))
    return f"HTTP {request.http_status}, code {request.response_code}{inner}: {why}"
