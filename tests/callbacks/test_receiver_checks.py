"""The verdict on each answer of a receiver (D29, D30)."""

from datetime import timedelta

import pytest

from sandbox_sim.callbacks.receiver_checks import (
    Assessment,
    CheckInput,
    Verdict,
    assess_acknowledgement,
    assess_connection,
    assess_encryption,
    assess_repeat,
    expect_refusal,
)
from sandbox_sim.records.callbacks import FailureKind, ReceiverResponse

THIRTY = timedelta(seconds=30)

SILENT = ReceiverResponse(None, "", 30_000, "no answer within 30 s", FailureKind.TIMEOUT)

CLOSED = ReceiverResponse(None, "", 3, "the receiver closed the connection", FailureKind.EXCHANGE)

HERE = "http://127.0.0.1:8080"


def said(status_code: int, duration_ms: int = 3) -> ReceiverResponse:
    return ReceiverResponse(status_code, "", duration_ms)


def case(answer: ReceiverResponse, first: int = 200, timeout: timedelta = THIRTY) -> CheckInput:
    return CheckInput(answer, said(first), timeout)


@pytest.mark.spec("delivery.2", "delivery.5")
@pytest.mark.decision("D30")
class TestAGenuineOne:
    @pytest.mark.parametrize("status_code", [200, 201, 202, 204, 299])
    def test_any_2xx_will_do_and_for_a_repeated_one_that_of_the_first(
        self, status_code: int
    ) -> None:
        expected = Assessment(Verdict.OK, f"acknowledged with HTTP {status_code}")

        assert assess_acknowledgement(case(said(status_code))) == expected
        assert assess_repeat(case(said(status_code), first=status_code)) == expected

    @pytest.mark.parametrize(
        ("answer", "remedy"),
        [
            (SILENT, "Acknowledge the callback first"),
            (CLOSED, "it should have sent an HTTP response"),
            (said(301), "Give the gateway the address that it redirects to"),
            (said(308), "Give the gateway the address that it redirects to"),
            (said(400), "choose the profiles that your account gets"),
            (said(401), "the secret key that signed this callback"),
            (said(403), "no login or CSRF check"),
            (said(404), "Check the path"),
            (said(405), "Let this address accept POST"),
            (said(410), "Check the path"),
            (said(415), "choose the profiles that your account gets"),
            (said(429), "rate limit"),
            (said(500), "See the log of the receiver"),
            (said(503), "See the log of the receiver"),
            (said(100), "See the log of the receiver"),
        ],
        ids=str,
    )
    def test_anything_else_is_wrong_and_there_is_something_to_do(
        self, answer: ReceiverResponse, remedy: str
    ) -> None:
        opinion = assess_acknowledgement(case(answer))

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
        slow = case(said(200, duration_ms), timeout=timeout)

        for assess in (assess_acknowledgement, assess_repeat):
            assert assess(slow).verdict is verdict
        assert assess_acknowledgement(case(said(200, 12_340))) == Assessment(
            Verdict.WARNING,
            "acknowledged with HTTP 200, but after 12.3 s of 30 s",
            "Acknowledge the callback first and process it afterwards.",
        )


class TestARepeatedOne:
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
    def test_any_other_is_wrong(self, answer: ReceiverResponse, says: str) -> None:
        opinion = assess_repeat(case(answer))

        assert opinion.verdict is Verdict.WRONG
        assert opinion.says == f"{says}; the first time it was HTTP 200"
        assert "do not process it twice" in opinion.remedy


@pytest.mark.spec("delivery.1")
@pytest.mark.decision("D29")
class TestAForgedOne:
    def test_it_must_be_refused(self) -> None:
        assess = expect_refusal("Lock the door.")
        for status in (400, 401, 403, 404, 422):
            refused = Assessment(Verdict.OK, f"refused with HTTP {status}")
            assert assess(case(said(status))) == refused
        for status in (200, 202, 204):
            says = f"a forged callback was accepted: HTTP {status}"
            assert assess(case(said(status))) == Assessment(Verdict.WRONG, says, "Lock the door.")

    @pytest.mark.parametrize(
        "answer", [said(302), said(429), said(500), said(503), SILENT, CLOSED], ids=str
    )
    def test_what_may_have_another_reason_is_no_proof(self, answer: ReceiverResponse) -> None:
        """A receiver that fails because a header is missing did not check the signature."""
        opinion = expect_refusal("Lock the door.")(case(answer))

        assert opinion.verdict is Verdict.WARNING
        assert "answer 401" in opinion.remedy


class TestTheWay:
    @pytest.mark.parametrize(
        ("kind", "remedy"),
        [
            (FailureKind.ADDRESS, "https://shop.example/callback"),
            (FailureKind.HOST, "DNS"),
            (FailureKind.CONNECTION, "Start the receiver"),
            (FailureKind.TIMEOUT, "firewall"),
            (FailureKind.CERTIFICATE, "SSL_CERT_FILE"),
            (FailureKind.TLS, "http://"),
        ],
    )
    def test_a_receiver_that_cannot_be_reached_or_whose_tls_fails(
        self, kind: FailureKind, remedy: str
    ) -> None:
        answer = ReceiverResponse(None, "", 1, "why not", kind)
        if kind in {FailureKind.CERTIFICATE, FailureKind.TLS}:
            opinion = assess_encryption("https://shop.test", answer)
        else:
            opinion = assess_connection(HERE, answer)

        assert opinion[:2] == (Verdict.WRONG, "why not")
        assert remedy in opinion.remedy

    @pytest.mark.parametrize(
        "answer",
        [
            said(200),
            said(500),
            CLOSED,
            ReceiverResponse(None, "", 1, "certificate", FailureKind.CERTIFICATE),
            ReceiverResponse(
                200, "half of it", 30_000, "no answer within 30 s", FailureKind.TIMEOUT
            ),
        ],
        ids=str,
    )
    def test_whoever_takes_the_connection_is_reached(self, answer: ReceiverResponse) -> None:
        assert assess_connection(HERE, answer) == Assessment(
            Verdict.OK, f"{HERE} takes connections"
        )

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
        opinion = assess_encryption(receiver, said(200))

        assert opinion.verdict is verdict
        assert bool(opinion.remedy) == (verdict is Verdict.WARNING)
