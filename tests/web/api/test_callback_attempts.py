"""Delivery of callbacks: acknowledgement, retries, and the record of each attempt (D30)."""

from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from sandbox_sim.records.callbacks import DeliveryState as State
from tests.conftest import Sandbox, StartSandbox
from tests.web.conftest import Receiver, kept_callback

pytestmark = pytest.mark.decision("D30")


SETTLED_AT = datetime(2026, 1, 1, 9, 0, 1, tzinfo=UTC)
FIVE_MINUTES = timedelta(minutes=5)


@pytest.mark.spec("delivery.2", "limits")
async def test_three_attempts_leave_five_minutes_apart(
    sandbox: Sandbox, receiver: Receiver
) -> None:
    receiver.answer_in_turn(500, 500, 500)
    await sandbox.collect(callback_url=receiver.url)

    await sandbox.advance(seconds=1)
    assert len(receiver.deliveries) == 1

    for already in (1, 2):
        await sandbox.advance(minutes=4, seconds=59, milliseconds=999)
        assert len(receiver.deliveries) == already
        await sandbox.advance(milliseconds=1)
        assert len(receiver.deliveries) == already + 1

    await sandbox.advance(days=1)
    assert len(receiver.deliveries) == 3
    assert (await kept_callback(sandbox)).state is State.FAILED


async def test_each_attempt_is_kept_with_what_the_receiver_said(
    sandbox: Sandbox, receiver: Receiver
) -> None:
    answers = iter([(503, "out to lunch"), (404, "no such order"), (200, "thanks")])

    async def answer(_request: web.Request) -> web.StreamResponse:
        status, text = next(answers)
        return web.Response(status=status, text=text)

    receiver.answer = answer
    await sandbox.collect(callback_url=receiver.url)
    await sandbox.advance(hours=1)

    attempts = (await kept_callback(sandbox)).attempts
    assert [attempt.number for attempt in attempts] == [1, 2, 3]
    assert [(attempt.status_code, attempt.response_body) for attempt in attempts] == [
        (503, "out to lunch"),
        (404, "no such order"),
        (200, "thanks"),
    ]
    due = [SETTLED_AT + n * FIVE_MINUTES for n in range(3)]
    assert [attempt.at for attempt in attempts] == due
    assert [attempt.next_attempt_at for attempt in attempts] == [*due[1:], None]
    assert all(attempt.duration_ms >= 0 for attempt in attempts)


@pytest.mark.decision("D15")
async def test_retries_go_on_after_the_status_has_been_forgotten(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    sandbox = await start_sandbox(callback_retry_interval_s=3600)
    receiver.answer_in_turn(500, 200)
    await sandbox.collect(callback_url=receiver.url)
    await sandbox.advance(hours=1, minutes=1)

    assert (await sandbox.status()).code == "027"
    assert [delivery.body["trans_ref"] for delivery in receiver.deliveries] == ["T1", "T1"]


@pytest.mark.spec("delivery.2", "limits")
async def test_a_receiver_that_does_not_answer_in_time_is_tried_again(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    sandbox = await start_sandbox(callback_timeout_s=0.5)
    go_on = receiver.hang()
    await sandbox.collect(callback_url=receiver.url)
    await sandbox.advance(seconds=1)
    go_on.set()

    (attempt,) = (await kept_callback(sandbox)).attempts
    assert attempt.status_code is None
    assert attempt.verdict == "not acknowledged: no answer within 0.5 s"
    assert attempt.duration_ms >= 500

    await sandbox.advance(minutes=5)
    assert len(receiver.deliveries) == 2
    assert (await kept_callback(sandbox)).state is State.DELIVERED
