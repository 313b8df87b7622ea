"""What the doctor sends to a receiver, in which order, and what it skips."""

import json
from datetime import timedelta
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.callbacks.bodies import check_signature, sign
from sandbox_sim.callbacks.doctor import Doctor, Receiver
from sandbox_sim.callbacks.receiver_checks import Finding, Verdict
from sandbox_sim.records.callbacks import SIGNATURE_HEADER, FailureKind, Profile, ReceiverResponse
from tests.fakes import BROKEN, OK, FakeSender, Post

URL = "https://shop.test/callback"
REFUSED = ReceiverResponse(401, "no", 7)
HEALTHY = (OK, OK, OK, OK, REFUSED, REFUSED, REFUSED)

# What the doctor sends for each profile, in this order.
SENT = (
    *("successful", "repeated", "failed", "cancelled"),
    *("no_signature", "wrong_signature", "changed_body"),
)

CHECKS = ("reachable", "tls", *SENT)


class Visit:
    """A receiver that gives these answers in turn, and the findings of the doctor."""

    def __init__(self, *answers: ReceiverResponse) -> None:
        sender = FakeSender(*answers)
        self.posts = sender.posts
        self.doctor = Doctor(sender, VirtualClock(), RandomIds(seed=1))
        self.findings: list[Finding] = []

    def of(self, check: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.check == check]

    def verdict(self, check: str) -> Verdict:
        """The verdict of a check that has only one."""
        (verdict,) = {finding.assessment.verdict for finding in self.of(check)}
        return verdict

    def verdicts(self) -> dict[str, Verdict]:
        return {finding.check: self.verdict(finding.check) for finding in self.findings}

    def body(self, check: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.posts[SENT.index(check)].body)
        return document


async def visit(
    *answers: ReceiverResponse, profiles: tuple[Profile, ...] = (Profile.FLAT,), **how: Any
) -> Visit:
    receiver = Receiver(**{"url": URL, "secret_key": "secret", "profiles": profiles, **how})
    visit = Visit(*answers)
    visit.findings = [finding async for finding in visit.doctor.examine(receiver)]
    return visit


def signature_of(post: Post) -> str | None:
    return post.headers.get(SIGNATURE_HEADER)


@pytest.fixture
async def seen() -> Visit:
    """The visit to a receiver that does everything right."""
    return await visit(*HEALTHY)


@pytest.mark.spec("delivery.1")
@pytest.mark.decision("D29")
class TestSentCallbacks:
    async def test_the_doctor_sends_genuine_and_forged_callbacks_of_each_outcome(
        self, seen: Visit
    ) -> None:
        verdicts = [check_signature(p.body, signature_of(p), ["secret"]) for p in seen.posts]
        assert verdicts == ["valid"] * 4 + ["missing", "invalid", "invalid"]
        statuses = [seen.body(check)["status"] for check in SENT]
        assert statuses == ["000", "000", "001", "003", "000", "000", "000"]
        assert seen.posts[0] == seen.posts[1], "the repeated one is the first byte for byte"
        body = seen.body("successful")
        assert (body["amount"], body["currency_code"]) == (10.5, "GHS")
        assert body["customer_number"] == "233244000001"

    async def test_the_changed_body_makes_a_failed_payment_successful(self, seen: Visit) -> None:
        genuine = dict(seen.body("changed_body"))
        genuine.update(status="001", status_desc="Transaction Failed", message="FAILED")
        text = json.dumps(genuine, ensure_ascii=False, separators=(",", ":"))
        assert sign(text.encode(), "secret") == signature_of(seen.posts[-1])

    async def test_each_callback_has_its_own_payment_with_an_id_that_names_the_doctor(
        self, seen: Visit
    ) -> None:
        ids = [seen.body(check)["transaction_id"] for check in SENT if check != "repeated"]
        network_ids = {body["network_transaction_id"] for body in map(seen.body, SENT)}
        assert len(set(ids)) == len(network_ids) == len(ids)
        assert all(identifier.startswith("DOCTOR-") for identifier in ids)
        assert all(len(identifier) <= 20 for identifier in ids)

        receiver = Receiver(URL, "secret", (Profile.FLAT,))
        _ = [finding async for finding in seen.doctor.examine(receiver)]
        bodies = [post.body for post in seen.posts]
        assert len(set(bodies)) == 2 * len(set(bodies[: len(SENT)])), "the next visit has others"

    @pytest.mark.decision("D30")
    async def test_callbacks_go_to_the_url_with_a_timeout_of_30_seconds_or_the_given_one(
        self, seen: Visit
    ) -> None:
        other = await visit(*HEALTHY, timeout=timedelta(seconds=3))

        for visited, seconds in ((seen, 30), (other, 3)):
            asked = {(post.url, post.timeout) for post in visited.posts}
            assert asked == {(URL, timedelta(seconds=seconds))}

    @pytest.mark.decision("D27")
    async def test_each_profile_gets_each_callback(self) -> None:
        answers = [answer for answer in HEALTHY for _ in Profile]

        seen = await visit(*answers, profiles=tuple(Profile))

        assert len(seen.posts) == len(Profile) * len(SENT)
        for check in SENT:
            assert [finding.profile for finding in seen.of(check)] == list(Profile)
        # These fields distinguish the bodies of the profiles.
        keys = [set(json.loads(post.body)) for post in seen.posts[: len(Profile)]]
        assert ["trans_ref" in k for k in keys] == [True, True, False, False, True]
        assert ["event_type" in k for k in keys] == [False, False, False, True, False]


class TestHealthyReceiver:
    async def test_each_check_is_ok_and_its_finding_has_the_exchange(self, seen: Visit) -> None:
        assert seen.verdicts() == dict.fromkeys(CHECKS, Verdict.OK)
        for finding, post, answer in zip(seen.findings[2:], seen.posts, HEALTHY, strict=True):
            assert finding.exchange is not None
            assert finding.exchange.callback.body.encode() == post.body
            assert finding.exchange.callback.headers == post.headers
            assert finding.exchange.response == answer
            assert finding.sends

    async def test_a_finding_is_yielded_as_soon_as_it_is_made(self) -> None:
        """Plain HTTP to another host is a warning."""
        seen, made = Visit(*HEALTHY), list[Finding]()
        plain = Receiver("http://shop.test/callback", "secret", (Profile.FLAT,))
        findings = seen.doctor.examine(plain)

        sent = []
        for _ in CHECKS:
            made.append(await anext(findings))
            sent.append(len(seen.posts))

        assert sent == [1, 1, 1, 2, 3, 4, 5, 6, 7]
        verdicts = {each.check: each.assessment.verdict for each in made}
        assert verdicts == dict.fromkeys(CHECKS, Verdict.OK) | {"tls": Verdict.WARNING}


class TestFaultyReceiver:
    @pytest.mark.spec("delivery.1")
    @pytest.mark.decision("D29")
    @pytest.mark.parametrize(
        ("check", "answer"),
        [
            *((each, BROKEN) for each in ("repeated", "failed", "cancelled")),
            *((each, OK) for each in ("no_signature", "wrong_signature", "changed_body")),
        ],
    )
    async def test_a_refused_genuine_or_an_acknowledged_forged_callback_is_wrong(
        self, check: str, answer: ReceiverResponse
    ) -> None:
        """Every callback has a signature, so a missing one is as wrong as a false one."""
        answers = list(HEALTHY)
        answers[SENT.index(check)] = answer

        seen = await visit(*answers)

        assert seen.verdicts() == dict.fromkeys(CHECKS, Verdict.OK) | {check: Verdict.WRONG}

    async def test_a_refused_profile_skips_its_further_checks(self) -> None:
        """If a receiver refuses genuine callbacks, its refusal of forged ones proves nothing."""
        answers = [OK, BROKEN, *HEALTHY[1:]]

        seen = await visit(*answers, profiles=(Profile.TRANS, Profile.EVENT))

        assert len(seen.posts) == len(SENT) + 1
        for check in SENT:
            trans, event = seen.of(check)
            assert trans.assessment.verdict is Verdict.OK
            wrong = Verdict.WRONG if check == "successful" else Verdict.SKIPPED
            assert (event.profile, event.assessment.verdict) == (Profile.EVENT, wrong)
        assert "until the successful one is acknowledged" in event.assessment.says

    async def test_a_receiver_that_fails_on_one_profile_may_accept_another(self) -> None:
        closed = ReceiverResponse(None, "", 3, "closed without an answer", FailureKind.EXCHANGE)

        seen = await visit(closed, *HEALTHY, profiles=(Profile.TRANS, Profile.EVENT))

        assert seen.verdict("reachable") is Verdict.OK
        trans, event = seen.of("successful")
        assert (trans.assessment.verdict, event.assessment.verdict) == (Verdict.WRONG, Verdict.OK)


@pytest.mark.parametrize(
    ("check", "kind"),
    [
        ("reachable", FailureKind.ADDRESS),
        ("reachable", FailureKind.HOST),
        ("reachable", FailureKind.CONNECTION),
        ("reachable", FailureKind.TIMEOUT),
        ("tls", FailureKind.TLS),
        ("tls", FailureKind.CERTIFICATE),
    ],
)
async def test_an_unreachable_receiver_gets_one_callback_and_one_wrong_verdict(
    check: str, kind: FailureKind
) -> None:
    answer = ReceiverResponse(None, "", 3, "why not", kind)

    seen = await visit(answer, profiles=tuple(Profile))

    assert len(seen.posts) == 1
    assert [finding.check for finding in seen.findings] == list(CHECKS)
    reached = {"reachable": Verdict.OK} if check == "tls" else {}
    expected = dict.fromkeys(CHECKS, Verdict.SKIPPED) | reached | {check: Verdict.WRONG}
    assert seen.verdicts() == expected
    says = {finding.check: finding.assessment.says for finding in seen.findings}
    assert says[check] == "why not"
    assert {says[each] for each in SENT} == {"no callback reaches the receiver"}


@pytest.mark.spec("delivery.3")
@pytest.mark.decision("D29")
async def test_a_gateway_that_does_not_sign_skips_the_forged_callbacks() -> None:
    seen = await visit(secret_key=None)

    assert [post.headers for post in seen.posts] == [{}] * 4
    forged = dict.fromkeys(SENT[4:], Verdict.SKIPPED)
    assert seen.verdicts() == dict.fromkeys(CHECKS, Verdict.OK) | forged
    assert "sign_callbacks" in seen.findings[-1].assessment.says
