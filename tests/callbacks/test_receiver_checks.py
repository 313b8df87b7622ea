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


def status(code: int, duration_ms: int = 3) -> ReceiverResponse:
    return ReceiverResponse(code, "", duration_ms)


def case(answer: ReceiverResponse, first: int = 200, timeout: timedelta = THIRTY) -> CheckInput:
    return CheckInput(answer, status(first), timeout)


@pytest.mark.spec("delivery.2", "delivery.5")
@pytest.mark.decision("D30")
class TestGenuineCallback:
    @pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
    def test_any_2xx_acknowledges_and_a_repeat_needs_the_status_of_the_first(
        self, code: int
    ) -> None:
        expected = Assessment(Verdict.OK, f"acknowledged with HTTP {code}")

        assert assess_acknowledgement(case(status(code))) == expected
        assert assess_repeat(case(status(code), first=code)) == expected

    @pytest.mark.parametrize(
        ("answer", "remedy"),
        [
            (SILENT, "Acknowledge the callback first"),
            (CLOSED, "it should have sent an HTTP response"),
            (status(301), "Give the gateway the address that it redirects to"),
            (status(308), "Give the gateway the address that it redirects to"),
            (status(400), "choose the profiles that your account gets"),
            (status(401), "the secret key that signed this callback"),
            (status(403), "no login or CSRF check"),
            (status(404), "Check the path"),
            (status(405), "Let this address accept POST"),
            (status(410), "Check the path"),
            (status(415), "choose the profiles that your account gets"),
            (status(429), "rate limit"),
            (status(500), "See the log of the receiver"),
            (status(503), "See the log of the receiver"),
            (status(100), "See the log of the receiver"),
        ],
        ids=str,
    )
    def test_another_answer_is_wrong_and_has_a_remedy(
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
    def test_an_answer_after_more_than_a_third_of_the_timeout_is_a_warning(
        self, duration_ms: int, timeout: timedelta, verdict: Verdict
    ) -> None:
        slow = case(status(200, duration_ms), timeout=timeout)

        for assess in (assess_acknowledgement, assess_repeat):
            assert assess(slow).verdict is verdict
        assert assess_acknowledgement(case(status(200, 12_340))) == Assessment(
            Verdict.WARNING,
            "acknowledged with HTTP 200, but after 12.3 s of 30 s",
            "Acknowledge the callback first and process it afterwards.",
        )


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (status(500), "not acknowledged: HTTP 500, and only 2xx acknowledges"),
        (status(409), "not acknowledged: HTTP 409, and only 2xx acknowledges"),
        (status(202), "acknowledged with HTTP 202"),
        (SILENT, "not acknowledged: no answer within 30 s"),
    ],
    ids=str,
)
def test_another_answer_to_a_repeated_callback_is_wrong(
    answer: ReceiverResponse, says: str
) -> None:
    opinion = assess_repeat(case(answer))

    assert opinion.verdict is Verdict.WRONG
    assert opinion.says == f"{says}; the first time it was HTTP 200"
    assert "do not process it twice" in opinion.remedy


@pytest.mark.spec("delivery.1")
@pytest.mark.decision("D29")
class TestForgedCallback:
    def test_a_forged_callback_must_be_refused(self) -> None:
        assess = expect_refusal("Lock the door.")
        for code in (400, 401, 403, 404, 422):
            refused = Assessment(Verdict.OK, f"refused with HTTP {code}")
            assert assess(case(status(code))) == refused
        for code in (200, 202, 204):
            says = f"a forged callback was accepted: HTTP {code}"
            assert assess(case(status(code))) == Assessment(Verdict.WRONG, says, "Lock the door.")

    @pytest.mark.parametrize(
        "answer", [status(302), status(429), status(500), status(503), SILENT, CLOSED], ids=str
    )
    def test_an_answer_with_another_possible_reason_is_a_warning(
        self, answer: ReceiverResponse
    ) -> None:
        """A receiver that fails because a header is missing did not check the signature."""
        opinion = expect_refusal("Lock the door.")(case(answer))

        assert opinion.verdict is Verdict.WARNING
        assert "answer 401" in opinion.remedy


class TestConnection:
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
    def test_an_unreachable_receiver_or_failed_tls_is_wrong_and_has_a_remedy(
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
            status(200),
            status(500),
            CLOSED,
            ReceiverResponse(None, "", 1, "certificate", FailureKind.CERTIFICATE),
            ReceiverResponse(
                200, "half of it", 30_000, "no answer within 30 s", FailureKind.TIMEOUT
            ),
        ],
        ids=str,
    )
    def test_a_receiver_that_accepts_the_connection_is_reached(
        self, answer: ReceiverResponse
    ) -> None:
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
    def test_plain_http_is_a_warning_except_at_loopback(
        self, receiver: str, verdict: Verdict
    ) -> None:
        opinion = assess_encryption(receiver, status(200))

        assert opinion.verdict is verdict
        assert bool(opinion.remedy) == (verdict is Verdict.WARNING)
