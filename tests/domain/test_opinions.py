"""What each answer of a receiver is held to say about it (D29, D30)."""

from datetime import timedelta

import pytest

from sandbox_sim.domain.callbacks.callbacks import Answer, FailureKind
from sandbox_sim.domain.callbacks.receiver_verdicts import (
    Case,
    Opinion,
    Verdict,
    acknowledged,
    answered_alike,
    encrypted,
    reached,
    refused,
)

THIRTY = timedelta(seconds=30)
SILENT = Answer(None, "", 30_000, "no answer within 30 s", FailureKind.TIMEOUT)
CLOSED = Answer(None, "", 3, "the receiver closed the connection", FailureKind.EXCHANGE)
HERE = "http://127.0.0.1:8080"


def said(status_code: int, duration_ms: int = 3) -> Answer:
    return Answer(status_code, "", duration_ms)


def case(answer: Answer, first: int = 200, timeout: timedelta = THIRTY) -> Case:
    return Case(answer, said(first), timeout)


@pytest.mark.spec("delivery.2", "delivery.5")
@pytest.mark.decision("D30")
class TestAGenuineOne:
    @pytest.mark.parametrize("status_code", [200, 201, 202, 204, 299])
    def test_any_2xx_will_do(self, status_code: int) -> None:
        says = f"acknowledged with HTTP {status_code}"

        assert acknowledged(case(said(status_code))) == Opinion(Verdict.OK, says)

    @pytest.mark.parametrize(
        ("answer", "remedy"),
        [
            (SILENT, "Acknowledge first"),
            (CLOSED, "it should have answered, and in HTTP"),
            (said(301), "Give the gateway the address that this leads to"),
            (said(308), "Give the gateway the address that this leads to"),
            (said(400), "choose by --profile those that your account gets"),
            (said(401), "the secret key that this was signed with"),
            (said(403), "no login and no CSRF check"),
            (said(404), "See that the path is right"),
            (said(405), "Let the address take POST"),
            (said(410), "See that the path is right"),
            (said(415), "choose by --profile those that your account gets"),
            (said(429), "rate limit"),
            (said(500), "Look into the receiver's log"),
            (said(503), "Look into the receiver's log"),
            (said(100), "Look into the receiver's log"),
        ],
        ids=str,
    )
    def test_anything_else_is_wrong_and_there_is_something_to_do(
        self, answer: Answer, remedy: str
    ) -> None:
        opinion = acknowledged(case(answer))

        assert opinion.verdict is Verdict.WRONG
        assert opinion.says.startswith("not acknowledged: ")
        assert remedy in opinion.remedy
        assert opinion.remedy.endswith(".")

    @pytest.mark.parametrize(
        ("duration_ms", "timeout", "verdict"),
        [
            (10_000, THIRTY, Verdict.OK),
            (10_001, THIRTY, Verdict.WARNING),
            (29_000, THIRTY, Verdict.WARNING),
            (1_001, timedelta(seconds=3), Verdict.WARNING),
            (1_001, timedelta(seconds=60), Verdict.OK),
        ],
    )
    def test_more_than_a_third_of_the_time_is_too_near_to_the_end(
        self, duration_ms: int, timeout: timedelta, verdict: Verdict
    ) -> None:
        assert acknowledged(case(said(200, duration_ms), timeout=timeout)).verdict is verdict

    def test_a_slow_one_is_told_how_slow(self) -> None:
        assert acknowledged(case(said(200, 12_340))) == Opinion(
            Verdict.WARNING,
            "acknowledged with HTTP 200, but after 12.3 s of 30 s",
            "Acknowledge first and do the work afterwards.",
        )


class TestARepeatedOne:
    @pytest.mark.parametrize("status_code", [200, 201, 202])
    def test_it_gets_the_status_of_the_first(self, status_code: int) -> None:
        opinion = answered_alike(case(said(status_code), first=status_code))

        assert opinion == Opinion(Verdict.OK, f"acknowledged with HTTP {status_code}")

    @pytest.mark.parametrize(
        ("answer", "says"),
        [
            (said(500), "not acknowledged: HTTP 500, and only 2xx acknowledges"),
            (said(409), "not acknowledged: HTTP 409, and only 2xx acknowledges"),
            (said(202), "acknowledged with HTTP 202"),
            (SILENT, "not acknowledged: no answer within 30 s"),
        ],
        ids=str,
    )
    def test_any_other_is_wrong(self, answer: Answer, says: str) -> None:
        opinion = answered_alike(case(answer))

        assert opinion.verdict is Verdict.WRONG
        assert opinion.says == f"{says}; the first time it was HTTP 200"
        assert "without handling it twice" in opinion.remedy

    def test_a_slow_one_is_a_warning_here_too(self) -> None:
        assert answered_alike(case(said(200, 20_000))).verdict is Verdict.WARNING


@pytest.mark.spec("delivery.1")
@pytest.mark.decision("D29")
class TestAForgedOne:
    @pytest.mark.parametrize("status_code", [400, 401, 403, 404, 422])
    def test_it_is_refused(self, status_code: int) -> None:
        opinion = refused("Lock the door.")(case(said(status_code)))

        assert opinion == Opinion(Verdict.OK, f"refused with HTTP {status_code}")

    @pytest.mark.parametrize("status_code", [200, 202, 204])
    def test_it_must_not_be_acknowledged(self, status_code: int) -> None:
        says = f"a forged callback was accepted: HTTP {status_code}"

        opinion = refused("Lock the door.")(case(said(status_code)))

        assert opinion == Opinion(Verdict.WRONG, says, "Lock the door.")

    @pytest.mark.parametrize(
        "answer", [said(302), said(429), said(500), said(503), SILENT, CLOSED], ids=str
    )
    def test_what_may_have_another_reason_is_no_proof(self, answer: Answer) -> None:
        """A receiver that breaks over a header that it misses did not look at it."""
        opinion = refused("Lock the door.")(case(answer))

        assert opinion.verdict is Verdict.WARNING
        assert "answer 401" in opinion.remedy


class TestTheWay:
    @pytest.mark.parametrize(
        ("failure_kind", "remedy"),
        [
            (FailureKind.ADDRESS, "https://shop.example/callback"),
            (FailureKind.HOST, "DNS"),
            (FailureKind.CONNECTION, "Start the receiver"),
            (FailureKind.TIMEOUT, "firewall"),
        ],
    )
    def test_a_receiver_that_cannot_be_reached(
        self, failure_kind: FailureKind, remedy: str
    ) -> None:
        opinion = reached(HERE, Answer(None, "", 1, "why not", failure_kind))

        assert opinion[:2] == (Verdict.WRONG, "why not")
        assert remedy in opinion.remedy

    @pytest.mark.parametrize(
        "answer",
        [
            said(200),
            said(500),
            CLOSED,
            Answer(None, "", 1, "certificate", FailureKind.CERTIFICATE),
            Answer(200, "half of it", 30_000, "no answer within 30 s", FailureKind.TIMEOUT),
        ],
        ids=str,
    )
    def test_whoever_takes_the_connection_is_reached(self, answer: Answer) -> None:
        assert reached(HERE, answer) == Opinion(Verdict.OK, f"{HERE} takes connections")

    @pytest.mark.parametrize(
        ("failure_kind", "remedy"),
        [(FailureKind.CERTIFICATE, "SSL_CERT_FILE"), (FailureKind.TLS, "http://")],
    )
    def test_tls_that_fails(self, failure_kind: FailureKind, remedy: str) -> None:
        opinion = encrypted("https://shop.test", Answer(None, "", 1, "why not", failure_kind))

        assert opinion[:2] == (Verdict.WRONG, "why not")
        assert remedy in opinion.remedy

    @pytest.mark.parametrize(
        ("receiver", "verdict"),
        [
            ("https://shop.test", Verdict.OK),
            ("https://127.0.0.1:8443", Verdict.OK),
            ("http://127.0.0.1:8080", Verdict.SKIPPED),
            ("http://[::1]:8080", Verdict.SKIPPED),
            ("http://localhost", Verdict.SKIPPED),
            ("http://shop.test", Verdict.WARNING),
            ("http://10.0.0.1:8080", Verdict.WARNING),
        ],
    )
    def test_plain_http_is_for_loopback(self, receiver: str, verdict: Verdict) -> None:
        opinion = encrypted(receiver, said(200))

        assert opinion.verdict is verdict
        assert bool(opinion.remedy) == (verdict is Verdict.WARNING)
