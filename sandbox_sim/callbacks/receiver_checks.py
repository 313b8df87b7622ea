"""The checks of a receiver: what it is sent, and what is wrong with its responses, with remedies.

Source: delivery.1, delivery.2, delivery.5, D27, D29 to D31.

A healthy receiver acknowledges every callback that a gateway may send it, a repeated one like the
first one. It refuses every callback that anyone else could have made. A callback without a
signature is one of those: every callback of the gateway has one (D29), and no key is needed to
leave it out.

A refusal says nothing about a receiver that refuses genuine callbacks too. So each profile has to
be acknowledged once (`FIRST_CHECK`) before its other checks are made (`FURTHER_CHECKS`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypedDict
from urllib.parse import urlsplit

from sandbox_sim.callbacks import bodies
from sandbox_sim.operations import Operation
from sandbox_sim.records import callbacks
from sandbox_sim.records.callbacks import (
    SIGNATURE_HEADER,
    CallbackRecord,
    FailureKind,
    Profile,
    ReceiverResponse,
)
from sandbox_sim.records.transactions import Payment, Status, TransactionRecord
from sandbox_sim.values.hosts import is_loopback
from sandbox_sim.values.json_text import viewer
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.values.vocabulary import DEFAULT_CURRENCY, PaymentOption

if TYPE_CHECKING:
    from sandbox_sim.callbacks.doctor import Receiver

# A response that takes more than this part of the time limit is a warning: 10 s of 30 s.
SLOW: Final = 1 / 3


class Verdict(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"
    NOTE = "note"  # wrong, or a warning, for a profile that the gateway does not send
    SKIPPED = "skipped"


class Assessment(NamedTuple):
    """A verdict, what was observed, and what to do about it where something is wrong."""

    verdict: Verdict
    says: str
    remedy: str = ""


class CheckInput(NamedTuple):
    """The input of a judge.

    first: the response to the first callback of the same profile.
    """

    response: ReceiverResponse
    first: ReceiverResponse
    timeout: timedelta


Judge = Callable[[CheckInput], Assessment]


def assess_paid(*, paid: bool) -> Assessment:
    """The order of an acknowledged successful payment must count as paid."""
    if paid:
        return Assessment(Verdict.OK, "the order counts as paid")
    return Assessment(
        Verdict.WRONG, "acknowledged, but the order does not count as paid", _OTHER_FIELDS
    )


def assess_unpaid(*, paid: bool) -> Assessment:
    """The order of a failed payment must not count as paid."""
    if not paid:
        return Assessment(Verdict.OK, "the order of a failed payment does not count as paid")
    return Assessment(Verdict.WRONG, "the order of a failed payment counts as paid", _READ_STATUS)


def assess_acknowledgement(case: CheckInput) -> Assessment:
    """A genuine callback must get a 2xx within a third of the time limit."""
    says = callbacks.verdict(case.response)
    if not case.response.acknowledges:
        return Assessment(Verdict.WRONG, says, _remedy(case.response))
    took = timedelta(milliseconds=case.response.duration_ms)
    if took > case.timeout * SLOW:
        says += f", but after {took.total_seconds():.1f} s of {case.timeout.total_seconds():g} s"
        return Assessment(Verdict.WARNING, says, _ACKNOWLEDGE_FIRST)
    return Assessment(Verdict.OK, says)


def assess_first(case: CheckInput) -> Assessment:
    """As `assess_acknowledgement`; an ok says that the order may still be unpaid."""
    assessment = assess_acknowledgement(case)
    if assessment.verdict is not Verdict.OK:
        return assessment
    return assessment._replace(says=f"{assessment.says}, {_NOT_YET_PAID}")


def assess_repeat(case: CheckInput) -> Assessment:
    """A repeated callback must be acknowledged with the status code of the first one."""
    if case.response.status_code == case.first.status_code:
        return assess_acknowledgement(case)
    says = (
        f"{callbacks.verdict(case.response)}; the first time it was HTTP {case.first.status_code}"
    )
    return Assessment(Verdict.WRONG, says, _MAKE_IDEMPOTENT)


def expect_refusal(remedy: str) -> Judge:
    """A judge that expects a forged callback to be refused.

    The refusal must be a 4xx about this callback; 429 is about all of them.
    """

    def judge(case: CheckInput) -> Assessment:
        code = case.response.status_code
        if case.response.acknowledges:
            return Assessment(Verdict.WRONG, f"a forged callback was accepted: HTTP {code}", remedy)
        if code is not None and 400 <= code < 500 and code != 429:
            return Assessment(Verdict.OK, f"refused with HTTP {code}")
        return Assessment(Verdict.WARNING, callbacks.verdict(case.response), _ANSWER_401)

    return judge


def assess_connection(receiver: str, response: ReceiverResponse) -> Assessment:
    """Whether the first callback reached `receiver`, given as scheme, host and port."""
    if response.status_code is None and (remedy := _NOT_REACHED.get(response.failure_kind)):
        return Assessment(Verdict.WRONG, response.problem or "", remedy)
    return Assessment(Verdict.OK, f"{receiver} takes connections")


def assess_encryption(receiver: str, response: ReceiverResponse) -> Assessment:
    """Whether the connection kept others from reading or changing the callback."""
    if remedy := _NOT_TRUSTED.get(response.failure_kind):
        return Assessment(Verdict.WRONG, response.problem or "", remedy)
    if receiver.startswith("https:"):
        return Assessment(Verdict.OK, "the certificate is accepted")
    if is_loopback(urlsplit(receiver).hostname or ""):
        return Assessment(Verdict.SKIPPED, "plain HTTP, which stays on this machine on loopback")
    says = "plain HTTP: others on the network can read what is sent"
    return Assessment(Verdict.WARNING, says, "Give the gateway an https address.")


_NOT_YET_PAID: Final = "which does not show that the order is paid"

# --- What to do about it ---------------------------------------------------------------------

_ACKNOWLEDGE_FIRST: Final = "Acknowledge the callback first and process it afterwards."

_MAKE_IDEMPOTENT: Final = (
    "Recognise a repeated callback by its transaction id, answer it like the first one and "
    "do not process it twice: a callback is sent again until it is acknowledged."
)

_ANSWER_401: Final = (
    "The callback was not accepted, but the response does not name the signature as the reason: "
    "answer 401 where the signature is missing or wrong."
)

CHECK_SIGNATURE: Final = (
    f"Compare {SIGNATURE_HEADER} with the hex HMAC-SHA-256 of the raw body under your secret key, "
    "and answer 401 where they differ."
)

REQUIRE_SIGNATURE: Final = (
    f"Answer 401 to a callback without {SIGNATURE_HEADER}: anyone who knows the address can send "
    "one."
)


_NOT_REACHED: Final[Mapping[FailureKind | None, str]] = {
    FailureKind.SETTING: "Add this host to the setting callback_hosts, if callbacks may go there.",
    FailureKind.ADDRESS: "Give an address such as https://shop.example/callback.",
    FailureKind.HOST: (
        "Check the spelling of the name, and that the DNS of this machine resolves it."
    ),
    FailureKind.CONNECTION: (
        "Start the receiver, or check that it listens at this address and port and that no "
        "firewall blocks the connection."
    ),
    FailureKind.TIMEOUT: (
        "Acknowledge the callback first and process it afterwards; if no request arrived at all, "
        "look for a firewall that blocks it."
    ),
}


_NOT_TRUSTED: Final[Mapping[FailureKind | None, str]] = {
    FailureKind.TLS: "Check that this port uses TLS; for plain HTTP use an http:// address.",
    FailureKind.CERTIFICATE: (
        "Serve a certificate for this name with its whole chain; if the authority is one of your "
        "own, name its file in the environment variable SSL_CERT_FILE."
    ),
}


_OTHER_FIELDS: Final = (
    "The receiver reads other fields than this body has: set a profile that works, see below, or "
    "change the receiver to read these."
)

_READ_STATUS: Final = "Mark an order as paid only where the status is 000."


# Which profile a receiver needs, by what it reads (D27).
PROFILE_ADVICE: Final = (
    ("compares trans_status with 000", "trans_bare"),
    ("reads transaction_id and status", "flat"),
    ("unsure", "superset"),
)


_UNKNOWN_IDS: Final = "if it looks up the payment, let it acknowledge unknown ones too"


def _remedy(response: ReceiverResponse) -> str:
    """What to do about a genuine callback that was not acknowledged."""
    if response.status_code is not None:
        return remedy_of_status(response.status_code)
    if response.failure_kind is FailureKind.TIMEOUT:
        return _ACKNOWLEDGE_FIRST
    return "See the log of the receiver: it should have sent an HTTP response."


def remedy_of_status(code: int) -> str:
    """What to do about a receiver that answers a genuine callback with this HTTP status."""
    match code:
        case 401 | 403:
            return (
                "Check that it has the secret key that signed this callback, that it verifies the "
                "raw body before any parsing, and that no login or CSRF check comes first."
            )
        case 404 | 410:
            return f"Check the path; {_UNKNOWN_IDS}."
        case 405:
            return "Let this address accept POST."
        case 429:
            return "Exclude callbacks from the rate limit: many may arrive at once."
        case _ if 300 <= code < 400:
            return "Give the gateway the address that it redirects to (https? a slash at the end?)."
        case _ if 400 <= code < 500:
            return (
                "Let it accept this body, or choose the profiles that your account gets (--profile "
                f"of the doctor, and the setting callback_profile); {_UNKNOWN_IDS}."
            )
        case _:
            return "See the log of the receiver: it failed while processing this callback."


# The beginning of the transaction id of every sample.
SAMPLE_PREFIX: Final = "DOCTOR-"


# Why a check was not made.
NO_CALLBACK_ARRIVED: Final = "no callback reaches the receiver"

FIRST_NOT_ACKNOWLEDGED: Final = "not meaningful until the successful one is acknowledged"

SIGNING_OFF: Final = "callbacks are not signed (setting sign_callbacks)"


class CallbackExchange(NamedTuple):
    """A callback that was sent, and the response to it."""

    callback: CallbackRecord
    response: ReceiverResponse


class SampleCallback(NamedTuple):
    """The data of one sample callback.

    transaction: pending, and used for this callback only.
    """

    transaction: TransactionRecord
    profile: Profile
    secret_key: str | None
    callback_id: str
    at: datetime

    def ended(self, status: Status) -> CallbackRecord:
        """The callback that reports this final status of the transaction."""
        ended = self.transaction.with_status(status, self.at)
        return bodies.compose(ended, self.profile, self.secret_key, self.callback_id, self.at)


@dataclass(frozen=True, slots=True)
class Check:
    """One kind of callback, and how the response of a healthy receiver is judged.

    payment_ends: the status of the payment, which a status query answers.
    again: the first callback of the profile is sent once more, byte for byte, and none is made.
    forge: makes a callback that the gateway would not send; only its signature shows that, or a
    status query. None: the callback reports how the payment ends (D31).
    """

    name: str
    sends: str
    judge: Judge
    payment_ends: Status
    again: bool = False
    forge: Callable[[SampleCallback], CallbackRecord] | None = None

    def make(self, sample: SampleCallback) -> CallbackRecord:
        """The callback of this kind for a sample."""
        return sample.ended(self.payment_ends) if self.forge is None else self.forge(sample)


class Finding(NamedTuple):
    """The result of one check; `profile` and `exchange` are None where nothing was sent for it."""

    check: str
    assessment: Assessment
    sends: str = ""
    profile: Profile | None = None
    exchange: CallbackExchange | None = None


def reference_of(callback: CallbackRecord) -> str:
    """The `reference` of the sample payment of a callback: the same text as its id."""
    return callback.transaction_id


def as_note(finding: Finding) -> Finding:
    """The finding about a profile that the gateway does not send: nothing of it is wrong."""
    if finding.assessment.verdict not in {Verdict.WRONG, Verdict.WARNING}:
        return finding
    return finding._replace(assessment=finding.assessment._replace(verdict=Verdict.NOTE))


def skipped(check: Check, why: str, profile: Profile | None = None) -> Finding:
    """The finding of a check that was not made."""
    return Finding(check.name, Assessment(Verdict.SKIPPED, why), check.sends, profile)


def sample_payment(url: str, identifier: str, service_id: int) -> Payment:
    """A collection that no client requested, with an id that is recognisable as a sample."""
    return Payment(
        operation=Operation.COLLECT,
        service_id=service_id,
        transaction_id=f"{SAMPLE_PREFIX}{identifier}",
        reference=f"{SAMPLE_PREFIX}{identifier}",
        amount=Decimal("10.50"),
        nw="MTN",
        party="0244000001",
        payment_mode=PaymentOption.MOBILE_MONEY,
        currency_code=DEFAULT_CURRENCY,
        callback_url=url,
    )


def unsigned(sample: SampleCallback) -> CallbackRecord:
    """A forged callback without a signature, as anyone could send it."""
    return sample._replace(secret_key=None).ended(Status.SUCCESSFUL)


def signed_with_other_key(sample: SampleCallback) -> CallbackRecord:
    """A forged callback that is signed with another key."""
    return sample._replace(secret_key=f"not {sample.secret_key}").ended(Status.SUCCESSFUL)


def with_changed_body(sample: SampleCallback) -> CallbackRecord:
    """A failed payment whose body was changed to a success on the way."""
    return sample.ended(Status.FAILED)._replace(body=sample.ended(Status.SUCCESSFUL).body)


# The checks of a failed payment, and of the orders behind a receiver (`doctor --paid`).
FAILED: Final = "failed"

PAID: Final = "paid"

NOT_PAID: Final = "failed_not_paid"


FIRST_CHECK: Final = Check("successful", "a successful payment", assess_first, Status.SUCCESSFUL)

FURTHER_CHECKS: Final = (
    Check("repeated", "the same successful payment once more", assess_repeat,
          Status.SUCCESSFUL, again=True),
    Check(FAILED, "a failed payment", assess_acknowledgement, Status.FAILED),
    Check("cancelled", "a cancelled payment", assess_acknowledgement, Status.CANCELLED),
    Check("no_signature", f"a successful payment without {SIGNATURE_HEADER}",
          expect_refusal(REQUIRE_SIGNATURE), Status.FAILED, forge=unsigned),
    Check("wrong_signature", "a successful payment, signed with another key",
          expect_refusal(CHECK_SIGNATURE), Status.FAILED, forge=signed_with_other_key),
    Check("changed_body", "a failed payment made successful, with the signature of the failed one",
          expect_refusal(CHECK_SIGNATURE), Status.FAILED, forge=with_changed_body),
)  # fmt: skip


# --- The report of the doctor -------------------------------------------------------------------

_VERDICTS = tuple(verdict.value for verdict in Verdict)


class SampleView(TypedDict):
    """A sample callback as it was sent."""

    what: Annotated[str, "what it is, in words"]
    transaction_id: str
    headers: Annotated[dict[str, str], "with the signature"]
    body: Annotated[str, "the exact text that is signed"]


class ResponseView(TypedDict):
    """What the receiver answered."""

    status_code: Annotated[int | None, "the HTTP status; null where there was no answer"]
    body: Annotated[str, "the first 4 KiB of the answer"]
    duration_ms: int
    problem: Annotated[str | None, "why there was no answer; else null"]


_sample_view, _response_view = viewer(SampleView), viewer(ResponseView)


class CheckView(TypedDict):
    """One check of the receiver."""

    check: Annotated[str, "its name"]
    profile: Annotated[str | None, "that of the sample; null where nothing was sent"]
    verdict: Annotated[
        str, _VERDICTS, "note: wrong, or a warning, for a profile that the gateway does not send"
    ]
    says: Annotated[str, "what was found"]
    remedy: Annotated[str | None, "what to change; null where nothing has to be"]
    sent: Annotated[SampleView | None, "null if nothing was sent"]
    came: Annotated[ResponseView | None, "null if nothing was sent"]


class ReceiverReport(TypedDict):
    """The whole report."""

    url: Annotated[str, "the receiver, with a password masked"]
    profiles: Annotated[list[str], "those that were sent"]
    judged: Annotated[
        list[str], "the profiles that the receiver must take; about the others there are notes"
    ]
    signed_with: Annotated[str | None, "a client key, or --secret-key; null without signing"]
    timeout_s: Annotated[float, "seconds that the receiver has for one sample"]
    healthy: Annotated[bool, "no check found anything wrong"]
    counts: Annotated[dict[str, int], "how many checks have each verdict"]
    checks: Annotated[list[CheckView], "in the order in which they were made"]


def shown(
    receiver: "Receiver", signed_with: str | None, findings: Sequence[Finding]
) -> ReceiverReport:
    """The report. signed_with: whose key signed the callbacks; None if they were not signed."""
    verdicts = [finding.assessment.verdict for finding in findings]
    return {
        "url": redact_text(receiver.url),
        "profiles": list(receiver.profiles),
        "judged": [each for each in receiver.profiles if receiver.must_accept(each)],
        "signed_with": signed_with,
        "timeout_s": receiver.timeout.total_seconds(),
        "healthy": Verdict.WRONG not in verdicts,
        "counts": {verdict.value: verdicts.count(verdict) for verdict in Verdict},
        "checks": [_check_view(finding) for finding in findings],
    }


def _check_view(finding: Finding) -> CheckView:
    verdict, says, remedy = finding.assessment
    exchange = finding.exchange
    return {
        "check": finding.check,
        "profile": finding.profile,
        "verdict": verdict,
        "says": says,
        "remedy": remedy or None,
        "sent": exchange and _sample_view(exchange.callback, what=finding.sends),
        "came": exchange and _response_view(exchange.response),
    }
