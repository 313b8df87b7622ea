"""The report of the doctor as a document: `sandbox-sim --json doctor` and the control API."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypedDict

from sandbox_sim.domain.callbacks.receiver_verdicts import Verdict
from sandbox_sim.domain.redaction import redact_text

if TYPE_CHECKING:  # serve starts without them
    from sandbox_sim.domain.callbacks.receiver_checks import Exchange, Finding
    from sandbox_sim.gateway.callbacks.doctor import Receiver

_VERDICTS = tuple(verdict.value for verdict in Verdict)


class SampleView(TypedDict):
    """A sample callback as it was sent."""

    what: str
    transaction_id: str
    headers: dict[str, str]
    body: str


class ResponseView(TypedDict):
    """What the receiver answered."""

    status_code: int | None
    body: str
    duration_ms: int
    problem: str | None


class CheckView(TypedDict):
    """One check; `sent` and `came` are null if nothing was sent for it."""

    check: str
    profile: str | None
    verdict: Annotated[str, _VERDICTS]
    says: str
    remedy: str | None
    sent: SampleView | None
    came: ResponseView | None


class ReceiverReport(TypedDict):
    """The whole report.

    signed_with: a client key, `--secret-key`, or null for unsigned. judged: the profiles that the
    receiver must take; about the others there are notes.
    """

    url: str
    profiles: list[str]
    judged: list[str]
    signed_with: str | None
    timeout_s: float
    healthy: bool
    counts: dict[str, int]
    checks: list[CheckView]


def shown(receiver: "Receiver", owner: str | None, findings: Sequence["Finding"]) -> ReceiverReport:
    """The report. owner: whose key signed the callbacks; None if they were not signed."""
    verdicts = [finding.assessment.verdict for finding in findings]
    return {
        "url": redact_text(receiver.url),
        "profiles": list(receiver.profiles),
        "judged": [each for each in receiver.profiles if receiver.judges(each)],
        "signed_with": owner,
        "timeout_s": receiver.timeout.total_seconds(),
        "healthy": Verdict.WRONG not in verdicts,
        "counts": {verdict.value: verdicts.count(verdict) for verdict in Verdict},
        "checks": [_check(finding) for finding in findings],
    }


def _check(finding: "Finding") -> CheckView:
    verdict, says, remedy = finding.assessment
    exchange = finding.exchange
    return {
        "check": finding.check,
        "profile": finding.profile,
        "verdict": verdict,
        "says": says,
        "remedy": remedy or None,
        "sent": None if exchange is None else _sent(finding.sends, exchange),
        "came": None if exchange is None else _came(exchange),
    }


def _sent(sends: str, exchange: "Exchange") -> SampleView:
    callback = exchange.callback
    return {
        "what": sends,
        "transaction_id": callback.transaction_id,
        "headers": dict(callback.headers),
        "body": callback.body,
    }


def _came(exchange: "Exchange") -> ResponseView:
    response = exchange.response
    return {
        "status_code": response.status_code,
        "body": response.body,
        "duration_ms": response.duration_ms,
        "problem": response.problem,
    }
