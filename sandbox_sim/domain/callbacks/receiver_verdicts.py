"""What the answers of a receiver say about it, and what to do where they say nothing good.

Source: delivery.1, delivery.2, delivery.5, D29, D30. A healthy receiver acknowledges every callback
that a gateway may send it, a repeated one like the first, and none that anybody else could have
made. Of the last kind is one without a signature: every callback has one (D29), and to leave it
out takes no key at all, so a receiver that lets it pass has no lock.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from sandbox_sim.domain.callbacks import callbacks
from sandbox_sim.domain.callbacks.callbacks import SIGNATURE_HEADER, Answer, FailureKind
from sandbox_sim.domain.hosts import is_loopback

# An answer that takes longer than this part of the time-out is too near to it: 10 s of 30 s.
SLOW: Final = 1 / 3


class Verdict(StrEnum):
    """What a check came to."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"
    SKIPPED = "skipped"


class Opinion(NamedTuple):
    """A verdict, what was seen, and what to do about it where something is to be done."""

    verdict: Verdict
    says: str
    remedy: str = ""


class Case(NamedTuple):
    """What a judge looks at; `first`: the answer to the first callback of the same profile."""

    answer: Answer
    first: Answer
    timeout: timedelta


Judge = Callable[[Case], Opinion]


def acknowledged(case: Case) -> Opinion:
    """A genuine callback gets a 2xx, and in good time."""
    says = callbacks.verdict(case.answer)
    if not case.answer.acknowledges:
        return Opinion(Verdict.WRONG, says, _remedy(case.answer))
    took = timedelta(milliseconds=case.answer.duration_ms)
    if took > case.timeout * SLOW:
        says += f", but after {took.total_seconds():.1f} s of {case.timeout.total_seconds():g} s"
        return Opinion(Verdict.WARNING, says, _ANSWER_FIRST)
    return Opinion(Verdict.OK, says)


def answered_alike(case: Case) -> Opinion:
    """A repeated delivery is acknowledged, and with the status of the first."""
    if case.answer.status_code == case.first.status_code:
        return acknowledged(case)
    says = f"{callbacks.verdict(case.answer)}; the first time it was HTTP {case.first.status_code}"
    return Opinion(Verdict.WRONG, says, _KNOW_IT_AGAIN)


def refused(remedy: str) -> Judge:
    """A forged callback is refused by a 4xx that is about this callback; 429 is about all."""

    def judge(case: Case) -> Opinion:
        code = case.answer.status_code
        if case.answer.acknowledges:
            return Opinion(Verdict.WRONG, f"a forged callback was accepted: HTTP {code}", remedy)
        if code is not None and 400 <= code < 500 and code != 429:
            return Opinion(Verdict.OK, f"refused with HTTP {code}")
        return Opinion(Verdict.WARNING, callbacks.verdict(case.answer), _SAY_401)

    return judge


def reached(receiver: str, answer: Answer) -> Opinion:
    """Whether the first callback came through to `receiver`, a scheme, host and port."""
    if answer.status_code is None and answer.failure_kind in _NOT_REACHED:
        return Opinion(Verdict.WRONG, answer.problem or "", _NOT_REACHED[answer.failure_kind])
    return Opinion(Verdict.OK, f"{receiver} takes connections")


def encrypted(receiver: str, answer: Answer) -> Opinion:
    """Whether it came there so that nobody on the way can read or change it."""
    if answer.failure_kind in _NOT_TRUSTED:
        return Opinion(Verdict.WRONG, answer.problem or "", _NOT_TRUSTED[answer.failure_kind])
    if receiver.startswith("https:"):
        return Opinion(Verdict.OK, "the certificate is accepted")
    if is_loopback(urlsplit(receiver).hostname or ""):
        return Opinion(Verdict.SKIPPED, "plain HTTP, which on loopback nobody else can read")
    says = "plain HTTP: whoever is on the way can read what is sent"
    return Opinion(Verdict.WARNING, says, "Give the gateway an https address.")


# --- What to do about it ---------------------------------------------------------------------

_ANSWER_FIRST: Final = "Acknowledge first and do the work afterwards."
_KNOW_IT_AGAIN: Final = (
    "Know what was handled by its transaction id, and answer a repeat like the first without "
    "handling it twice: whatever was not acknowledged comes again."
)
_SAY_401: Final = (
    "It was not accepted, but nothing says that this was for its signature: answer 401 where that "
    "is missing or wrong."
)
CHECK_SIGNATURE: Final = (
    f"Compare {SIGNATURE_HEADER} with the hex HMAC-SHA-256 of the raw body under your secret key, "
    "and answer 401 where they differ."
)
WANT_SIGNATURE: Final = (
    f"Answer 401 to a callback without {SIGNATURE_HEADER}: whoever knows the address can send one."
)

_NOT_REACHED: Final[Mapping[FailureKind | None, str]] = {
    FailureKind.ADDRESS: "Give an address such as https://shop.example/callback.",
    FailureKind.HOST: (
        "See that the name is spelled right, and that the DNS of this machine has it."
    ),
    FailureKind.CONNECTION: (
        "Start the receiver, or see that it listens at this address and port and that no firewall "
        "is in between."
    ),
    FailureKind.TIMEOUT: (
        "Acknowledge first and do the work afterwards; if nothing came in at all, look for a "
        "firewall in between."
    ),
}

_NOT_TRUSTED: Final[Mapping[FailureKind | None, str]] = {
    FailureKind.TLS: "See that this port speaks TLS; the address of one that does not is http://.",
    FailureKind.CERTIFICATE: (
        "Serve a certificate for this name with its whole chain; if the authority is one of your "
        "own, name its file in the environment variable SSL_CERT_FILE."
    ),
}

_UNKNOWN_IDS: Final = "if it looks payments up, let it acknowledge unknown ones too"


def _remedy(answer: Answer) -> str:
    """What to do about a genuine callback that was not acknowledged."""
    match answer.status_code:
        case None if answer.failure_kind is FailureKind.TIMEOUT:
            return _ANSWER_FIRST
        case None:
            return "Look into the receiver's log: it should have answered, and in HTTP."
        case 401 | 403:
            return (
                "See that it has the secret key that this was signed with, that it takes the raw "
                "body before any parsing, and that no login and no CSRF check comes first."
            )
        case 404 | 410:
            return f"See that the path is right; {_UNKNOWN_IDS}."
        case 405:
            return "Let the address take POST."
        case 429:
            return "Take callbacks out of the rate limit: they come as payments do, many at once."
        case code if 300 <= code < 400:
            return "Give the gateway the address that this leads to (https? a slash at the end?)."
        case code if 400 <= code < 500:
            return (
                "Let it take this body, or choose by --profile those that your account gets; "
                f"{_UNKNOWN_IDS}."
            )
        case _:
            return "Look into the receiver's log: it broke over this callback."
