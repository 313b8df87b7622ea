"""What happens in a case, in order: notes of ours, and what is seen at the gateway."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.certify.verdicts import Party, TimelineEvent
from sandbox_sim.testing import Callback, Request, SandboxGateway


class CaseTimeline:
    """The events of one case. `look` adds what is new at the gateway."""

    def __init__(self, gateway: SandboxGateway) -> None:
        self._gateway = gateway
        self._begun = SystemClock.monotonic()
        self._seen: set[str] = set()
        self._requests: list[tuple[timedelta, Request]] = []
        self.events: list[TimelineEvent] = []

    @property
    def elapsed(self) -> timedelta:
        """Real time since the case began."""
        return timedelta(seconds=SystemClock.monotonic() - self._begun)

    def note(self, source: Party, target: Party, text: str) -> None:
        """Add an event that happens now."""
        self.events.append(TimelineEvent(self.elapsed, self._gateway.now, source, target, text))

    def look(self) -> None:
        """Add the requests that came to the gateway, and the callbacks that were answered.

        A callback goes before requests of the same moment: they may follow from it.
        """
        now = self.elapsed
        new = [*self._new_callbacks(), *self._new_requests(now)]
        self.events += (each._replace(at=now) for each in sorted(new, key=_moment))

    def requests(self, operation: str) -> Sequence[tuple[timedelta, Request]]:
        """The requests for an operation, with the real time at which `look` saw each."""
        return [each for each in self._requests if each[1].operation == operation]

    def _new_requests(self, now: timedelta) -> Iterator[TimelineEvent]:
        for request in self._gateway.requests:
            if self._is_new(request.id):
                self._requests.append((now, request))
                yield TimelineEvent(now, request.at, "application", "gateway", _asked(request))
                yield TimelineEvent(now, request.at, "gateway", "application", _answered(request))

    def _new_callbacks(self) -> Iterator[TimelineEvent]:
        for callback in self._gateway.callbacks:
            for attempt in callback.attempts:
                if self._is_new(f"{callback.id}/{attempt.number}"):
                    text = f"{_about(callback)}: {attempt.verdict}"
                    yield TimelineEvent(self.elapsed, attempt.at, "gateway", "application", text)

    def _is_new(self, key: str) -> bool:
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new


def _moment(event: TimelineEvent) -> datetime:
    return event.gateway_time


def _about(callback: Callback) -> str:
    return f"callback {callback.transaction_id}, status {callback.status}"


def _asked(request: Request) -> str:
    return " ".join(filter(None, (request.operation or request.path, request.transaction_id)))


def _answered(request: Request) -> str:
    inner = ""
    if request.operation == "status" and isinstance(request.answer, dict):
        record = request.answer.get("response_data")
        inner = f", status {record['status']} inside" if isinstance(record, dict) else ""
    is_lost = request.rule == "fault" and request.http_status < 400
    lost = "; the answer is lost" if is_lost else ""
    return f"HTTP {request.http_status}, code {request.response_code}{inner}: {request.why}{lost}"
