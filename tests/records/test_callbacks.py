"""Callbacks: the attempts at each and their results."""

import hashlib
import hmac
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.callbacks import bodies
from sandbox_sim.records import callbacks
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import CallbackRecord, DeliveryState, Profile, ReceiverResponse
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.peer_input import read_json
from tests.records.samples import NOON, SETTLED, settled

SCHEDULE = Behaviour().schedule

REFUSED = ReceiverResponse(500, "sorry", 34)


def composed(profile: Profile = Profile.TRANS, secret_key: str | None = "secret") -> CallbackRecord:
    return bodies.compose(settled(), profile, secret_key, "C1", SETTLED)


def five_minutes(times: int) -> timedelta:
    return timedelta(minutes=5) * times


@pytest.mark.spec("delivery.1", "delivery.3")
@pytest.mark.decision("D18", "D27", "D29")
@pytest.mark.parametrize("profile", Profile)
def test_a_callback_has_the_body_of_its_profile_and_its_signature(profile: Profile) -> None:
    callback = composed(profile)
    sent = read_json(callback.body)

    assert list(sent.items()) == list(bodies.BODIES[profile](settled(), SETTLED).items())
    expected = hmac.new(b"secret", callback.body.encode(), hashlib.sha256).hexdigest()
    assert (callback.signature, composed(profile, None).signature) == (expected, None)
    assert callback.url == "http://127.0.0.1:9/callback"
    assert (callback.service_id, callback.transaction_id) == (55, "T1")
    assert callback.network_transaction_id == sent.get(
        "trans_id", sent.get("network_transaction_id")
    )
    assert (callback.state, callback.attempts) == (DeliveryState.PENDING, ())


@pytest.mark.spec("delivery.2", "limits")
@pytest.mark.decision("D30")
def test_a_callback_has_three_attempts_of_thirty_seconds_five_minutes_apart() -> None:
    assert (SCHEDULE.attempts, SCHEDULE.interval) == (3, timedelta(minutes=5))
    assert SCHEDULE.timeout == timedelta(seconds=30)
    assert (callbacks.KEPT_BODY_BYTES, callbacks.KEPT_CALLBACKS) == (4096, 10_000)
    callback = composed()
    for attempt in range(3):
        callback = callback.with_attempt(REFUSED, NOON + five_minutes(attempt), SCHEDULE)

    assert callback.state is DeliveryState.FAILED
    assert [(attempt.number, attempt.next_attempt_at) for attempt in callback.attempts] == [
        (1, NOON + five_minutes(1)),
        (2, NOON + five_minutes(2)),
        (3, None),
    ]


@pytest.mark.spec("delivery.5")
@pytest.mark.decision("D30")
@pytest.mark.parametrize(
    ("status_code", "verdict"),
    [
        *((code, f"acknowledged with HTTP {code}") for code in (200, 201, 202, 204, 299)),
        *((code, f"HTTP {code}, and only 2xx") for code in (101, 199, 400, 404, 500, 503)),
        *((code, "redirect") for code in (300, 301, 302, 307, 399)),
        (None, "no answer within 30 s"),
    ],
)
def test_only_a_2xx_status_acknowledges_a_callback(status_code: int | None, verdict: str) -> None:
    response = ReceiverResponse(status_code, "said", 34, problem="no answer within 30 s")
    callback = composed().with_attempt(response, SETTLED, SCHEDULE)

    (attempt,) = callback.attempts
    acknowledged = verdict.startswith("acknowledged")
    assert callback.state is (DeliveryState.DELIVERED if acknowledged else DeliveryState.RETRYING)
    assert attempt.next_attempt_at == (None if acknowledged else SETTLED + five_minutes(1))
    assert attempt.verdict == verdict if acknowledged else verdict in attempt.verdict
    assert attempt.verdict.startswith("not acknowledged: ") is not acknowledged
    assert (attempt.number, attempt.at, attempt.status_code) == (1, SETTLED, status_code)
    assert (attempt.duration_ms, attempt.response_body) == (34, "said")


@pytest.mark.decision("D18", "D30")
@given(st.lists(st.none() | st.integers(200, 599), max_size=5), st.integers(1, 5))
def test_attempts_change_the_state_of_a_callback_and_not_its_body(
    status_codes: list[int | None], attempts: int
) -> None:
    before = callback = composed()
    schedule = replace(SCHEDULE, attempts=attempts)
    for status_code in status_codes:
        if not callback.state.is_waiting:
            break
        response = ReceiverResponse(status_code, "", 1, "gone")
        callback = callback.with_attempt(response, SETTLED, schedule)

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
def test_a_state_shows_whether_an_attempt_follows_and_whether_one_was_refused(
    state: DeliveryState, *, waiting: bool, unacknowledged: bool
) -> None:
    assert (state.is_waiting, state.is_unacknowledged) == (waiting, unacknowledged)
    assert callbacks.shown(composed()._replace(state=state))["unacknowledged"] is unacknowledged


@pytest.mark.decision("D30")
def test_a_callback_can_be_sent_again_or_its_next_attempt_made_earlier() -> None:
    """A callback that is sent again is pending only if it was never tried."""
    held = composed()._replace(held=True)
    tried = held.with_attempt(ReceiverResponse(200, "thanks", 12), SETTLED, SCHEDULE)
    for callback, state in ((held, "pending"), (tried, "retrying")):
        again = callback.to_resend(None)
        assert (again.state, again.held) == (state, False)

    refused = held.with_attempt(REFUSED, SETTLED, SCHEDULE)
    refused = refused.with_attempt(REFUSED, SETTLED, SCHEDULE)
    first, second = refused.attempts
    earlier = refused.next_attempt(NOON)
    assert earlier.attempts == (first, second._replace(next_attempt_at=NOON))
    assert not earlier.held


def test_a_reset_of_all_or_of_its_service_deletes_a_callback_of_mode_s() -> None:
    sandbox, live = composed(), composed()._replace(mode=ServiceMode.PRODUCTION)

    assert [sandbox.is_reset_with(each) for each in (None, 55, 56)] == [True, True, False]
    assert not any(live.is_reset_with(each) for each in (None, 55))
