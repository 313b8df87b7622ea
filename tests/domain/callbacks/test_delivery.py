"""The attempts at a callback, and the result of each."""

import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.domain.callbacks import callback_bodies, callbacks
from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.callbacks.callbacks import Callback, ReceiverResponse, Schedule
from sandbox_sim.domain.callbacks.delivery_state import DeliveryState
from sandbox_sim.domain.money import read_json
from tests.domain.samples import NOON, SETTLED, settled

SCHEDULE = Schedule()
TAKEN = ReceiverResponse(200, "thanks", 12)
REFUSED = ReceiverResponse(500, "sorry", 34)
SILENT = ReceiverResponse(None, "", 30000, problem="no answer within 30 s")
STATUS_CODES = st.none() | st.integers(200, 599)


def composed(profile: Profile = Profile.TRANS, secret_key: str | None = "secret") -> Callback:
    return callbacks.compose(settled(), profile, secret_key, "C1", SETTLED)


def five_minutes(times: int) -> timedelta:
    return timedelta(minutes=5) * times


@pytest.mark.spec("delivery.1", "delivery.3")
@pytest.mark.decision("D29")
@pytest.mark.parametrize("profile", Profile)
def test_a_callback_is_signed_over_the_very_bytes_it_sends(profile: Profile) -> None:
    callback = composed(profile)
    expected = hmac.new(b"secret", callback.body.encode(), hashlib.sha256).hexdigest()

    assert callback.signature == expected


@pytest.mark.decision("D29")
def test_without_a_key_a_callback_is_not_signed() -> None:
    assert composed(secret_key=None).signature is None


@pytest.mark.decision("D27", "D29")
@pytest.mark.parametrize("profile", Profile)
def test_the_bytes_are_the_body_of_the_profile_in_its_order(profile: Profile) -> None:
    sent = read_json(composed(profile).body)

    assert list(sent.items()) == list(callback_bodies.BODIES[profile](settled(), SETTLED).items())


@pytest.mark.decision("D18")
def test_a_callback_belongs_to_its_transaction_and_goes_where_the_request_said() -> None:
    callback = composed()

    assert callback.url == "http://127.0.0.1:9/callback"
    assert (callback.service_id, callback.transaction_id) == (55, "T1")
    assert callback.network_transaction_id == json.loads(callback.body)["trans_id"]
    assert (callback.state, callback.attempts) == (DeliveryState.PENDING, ())


@pytest.mark.spec("delivery.2", "limits")
@pytest.mark.decision("D30")
def test_three_attempts_five_minutes_apart_of_thirty_seconds_each() -> None:
    assert SCHEDULE.attempts == 3
    assert SCHEDULE.interval == timedelta(minutes=5)
    assert SCHEDULE.timeout == timedelta(seconds=30)


@pytest.mark.spec("delivery.5")
@pytest.mark.decision("D30")
@pytest.mark.parametrize("status_code", [200, 201, 202, 204, 299])
def test_any_2xx_acknowledges(status_code: int) -> None:
    callback = composed().with_attempt(ReceiverResponse(status_code, "", 5), SETTLED, SCHEDULE)

    assert callback.state is DeliveryState.DELIVERED
    assert callback.attempts[0].next_attempt_at is None
    assert callback.attempts[0].verdict == f"acknowledged with HTTP {status_code}"


@pytest.mark.spec("delivery.5")
@pytest.mark.decision("D30")
@pytest.mark.parametrize("status_code", [None, 101, 199, 300, 301, 302, 307, 400, 404, 500, 503])
def test_nothing_else_does(status_code: int | None) -> None:
    callback = composed().with_attempt(
        ReceiverResponse(status_code, "", 5, problem="gone"), SETTLED, SCHEDULE
    )

    assert callback.state is DeliveryState.RETRYING
    assert callback.attempts[0].next_attempt_at == SETTLED + five_minutes(1)
    assert callback.attempts[0].verdict.startswith("not acknowledged: ")


@pytest.mark.decision("D30")
@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (ReceiverResponse(300, "", 5), "redirect"),
        (ReceiverResponse(399, "", 5), "redirect"),
        (ReceiverResponse(400, "", 5), "HTTP 400, and only 2xx"),
        (ReceiverResponse(199, "", 5), "HTTP 199, and only 2xx"),
        (SILENT, "no answer within 30 s"),
    ],
)
def test_the_verdict_says_why(answer: ReceiverResponse, word: str) -> None:
    assert word in callbacks.verdict(answer)


@pytest.mark.decision("D30")
def test_an_attempt_keeps_what_the_receiver_said() -> None:
    (attempt,) = composed().with_attempt(REFUSED, SETTLED, SCHEDULE).attempts

    assert attempt.number == 1
    assert attempt.at == SETTLED
    assert (attempt.status_code, attempt.duration_ms, attempt.response_body) == (500, 34, "sorry")


@pytest.mark.decision("D30")
def test_four_kib_of_an_answer_are_kept() -> None:
    assert callbacks.KEPT_BODY_BYTES == 4096


@pytest.mark.spec("delivery.2")
@pytest.mark.decision("D30")
def test_the_third_refusal_is_the_end() -> None:
    callback = composed()
    for attempt in range(3):
        callback = callback.with_attempt(REFUSED, NOON + five_minutes(attempt), SCHEDULE)

    assert callback.state is DeliveryState.FAILED
    assert [attempt.number for attempt in callback.attempts] == [1, 2, 3]
    assert [attempt.next_attempt_at for attempt in callback.attempts] == [
        NOON + five_minutes(1),
        NOON + five_minutes(2),
        None,
    ]


@pytest.mark.spec("delivery.2")
@pytest.mark.decision("D30")
@pytest.mark.parametrize("refusals", [0, 1, 2])
def test_one_acknowledgement_is_enough(refusals: int) -> None:
    callback = composed()
    for answer in [REFUSED] * refusals + [TAKEN]:
        callback = callback.with_attempt(answer, SETTLED, SCHEDULE)

    assert callback.state is DeliveryState.DELIVERED
    assert len(callback.attempts) == refusals + 1


@pytest.mark.decision("D18", "D30")
@given(st.lists(STATUS_CODES, max_size=5), st.integers(1, 5))
def test_attempts_change_where_a_callback_stands_and_never_what_it_says(
    status_codes: list[int | None], attempts: int
) -> None:
    before = callback = composed()
    schedule = Schedule(attempts=attempts)
    for status_code in status_codes:
        if not callback.state.is_waiting:
            break
        callback = callback.with_attempt(
            ReceiverResponse(status_code, "", 1, "gone"), SETTLED, schedule
        )

    assert (callback.body, callback.signature) == (before.body, before.signature)
    assert len(callback.attempts) <= attempts
    waiting = [attempt.next_attempt_at is not None for attempt in callback.attempts]
    assert all(waiting[:-1])
    assert not waiting or waiting[-1] is (callback.state is DeliveryState.RETRYING)


@pytest.mark.decision("D30")
@pytest.mark.parametrize(
    ("state", "waiting", "unacknowledged"),
    [
        (DeliveryState.PENDING, True, False),
        (DeliveryState.RETRYING, True, True),
        (DeliveryState.DELIVERED, False, False),
        (DeliveryState.FAILED, False, True),
        (DeliveryState.DROPPED, False, False),
    ],
)
def test_a_state_says_whether_an_attempt_follows_and_whether_one_was_refused(
    state: DeliveryState, *, waiting: bool, unacknowledged: bool
) -> None:
    assert (state.is_waiting, state.is_unacknowledged) == (waiting, unacknowledged)
    assert callbacks.shown(composed()._replace(state=state))["unacknowledged"] is unacknowledged


@pytest.mark.decision("D30")
@pytest.mark.parametrize(("answers", "state"), [([], "pending"), ([TAKEN], "retrying")])
def test_one_that_is_sent_again_is_pending_only_if_it_was_never_tried(
    answers: list[ReceiverResponse], state: str
) -> None:
    callback = composed()
    for answer in answers:
        callback = callback.with_attempt(answer, SETTLED, SCHEDULE)

    assert callback.to_resend(None).state == state
