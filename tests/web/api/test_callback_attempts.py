"""Delivery of callbacks: acknowledgement, retries, and the record of each attempt (D30)."""

import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from sandbox_sim.domain.callbacks.delivery_state import DeliveryState as State
from tests.conftest import Sandbox, StartSandbox
from tests.web.conftest import Receiver, StartReceiver, kept_callback

SETTLED_AT = datetime(2026, 1, 1, 9, 0, 1, tzinfo=UTC)
FIVE_MINUTES = timedelta(minutes=5)


@pytest.mark.spec("delivery.5")
@pytest.mark.decision("D30")
@pytest.mark.parametrize("status", [200, 201, 202, 204])
async def test_any_2xx_acknowledges(sandbox: Sandbox, receiver: Receiver, status: int) -> None:
    receiver.answer_in_turn(status)
    await sandbox.collect(callback_url=receiver.url)
    await sandbox.advance(hours=1)

    assert len(receiver.deliveries) == 1
    assert (await kept_callback(sandbox)).state is State.DELIVERED


@pytest.mark.spec("delivery.2", "limits")
@pytest.mark.decision("D30")
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


@pytest.mark.spec("delivery.2")
@pytest.mark.decision("D18", "D29", "D30")
async def test_a_receiver_that_recovers_gets_the_same_bytes_and_signature_again(
    sandbox: Sandbox, receiver: Receiver
) -> None:
    receiver.answer_in_turn(503, 500, 200)
    await sandbox.collect(callback_url=receiver.url)
    network_id = (await sandbox.status()).data["network_transaction_id"]
    await sandbox.advance(hours=1)

    first, second, third = receiver.deliveries
    assert first.raw == second.raw == third.raw
    assert first.signature == second.signature == third.signature
    assert third.body["trans_id"] == network_id
    assert (await kept_callback(sandbox)).state is State.DELIVERED


@pytest.mark.decision("D30")
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


@pytest.mark.decision("D16", "D30")
async def test_whether_the_receiver_takes_it_changes_nothing_about_the_transaction(
    sandbox: Sandbox, receiver: Receiver
) -> None:
    receiver.answer_in_turn(500, 500, 500)
    await sandbox.collect(callback_url=receiver.url)

    for minutes in (1, 5, 5):
        await sandbox.advance(minutes=minutes)
        assert (await sandbox.status()).data["status"] == "000"


@pytest.mark.decision("D30")
async def test_attempts_and_their_distance_are_settings(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    sandbox = await start_sandbox(callback_attempts=2, callback_retry_interval_s=0.5)
    receiver.answer_in_turn(500, 500)
    await sandbox.collect(callback_url=receiver.url)
    await sandbox.advance(hours=1)

    first, second = (await kept_callback(sandbox)).attempts
    assert second.at - first.at == timedelta(seconds=0.5)
    assert len(receiver.deliveries) == 2


@pytest.mark.decision("D15", "D30")
async def test_retries_go_on_after_the_status_has_been_forgotten(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    sandbox = await start_sandbox(callback_retry_interval_s=3600)
    receiver.answer_in_turn(500, 200)
    await sandbox.collect(callback_url=receiver.url)
    await sandbox.advance(hours=1, minutes=1)

    assert (await sandbox.status()).code == "027"
    assert [delivery.body["trans_ref"] for delivery in receiver.deliveries] == ["T1", "T1"]


@pytest.mark.spec("delivery.5")
@pytest.mark.decision("D30")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(
    sandbox: Sandbox, start_receiver: StartReceiver, status: int
) -> None:
    receiver, elsewhere = await start_receiver(), await start_receiver()

    async def redirect(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": elsewhere.url})

    receiver.answer = redirect
    await sandbox.collect(callback_url=receiver.url)
    await sandbox.advance(hours=1)

    assert len(receiver.deliveries) == 3
    assert elsewhere.deliveries == []
    callback = await kept_callback(sandbox)
    assert callback.state is State.FAILED
    assert "redirect" in callback.attempts[0].verdict


@pytest.mark.decision("D30")
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (200, "acknowledged with HTTP 200"),
        (204, "acknowledged with HTTP 204"),
        (304, "not acknowledged: HTTP 304"),
        (404, "not acknowledged: HTTP 404"),
        (500, "not acknowledged: HTTP 500"),
    ],
)
async def test_a_verdict_in_words_says_what_an_answer_came_to(
    sandbox: Sandbox, receiver: Receiver, status: int, words: str
) -> None:
    receiver.answer_in_turn(status)
    await sandbox.collect(callback_url=receiver.url)
    await sandbox.advance(seconds=1)

    (attempt,) = (await kept_callback(sandbox)).attempts
    assert attempt.verdict.startswith(words)


@pytest.mark.decision("D30")
async def test_a_verdict_says_that_nobody_listens(sandbox: Sandbox) -> None:
    with socket.socket() as taken_but_silent:
        taken_but_silent.bind(("127.0.0.1", 0))
        port = taken_but_silent.getsockname()[1]
        await sandbox.collect(callback_url=f"http://127.0.0.1:{port}/")
        await sandbox.advance(seconds=1)

    (attempt,) = (await kept_callback(sandbox)).attempts
    assert attempt.status_code is None
    assert attempt.verdict.startswith(f"not acknowledged: no connection to 127.0.0.1:{port}")


@pytest.mark.decision("D30")
async def test_a_verdict_says_that_the_receiver_hung_up(
    sandbox: Sandbox, receiver: Receiver
) -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    receiver.answer = hang_up
    await sandbox.collect(callback_url=receiver.url)
    await sandbox.advance(seconds=1)

    (attempt,) = (await kept_callback(sandbox)).attempts
    assert attempt.status_code is None
    assert "closed the connection" in attempt.verdict


@pytest.mark.spec("delivery.2", "limits")
@pytest.mark.decision("D30")
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


@pytest.mark.decision("D30")
@pytest.mark.parametrize(
    ("body", "kept"),
    [
        pytest.param(b"", "", id="nothing"),
        pytest.param(b"x" * 4096, "x" * 4096, id="just 4 KiB"),
        pytest.param(b"x" * 4096 + b"y", "x" * 4096, id="one byte more"),
        pytest.param(b"x" * 1_000_000, "x" * 4096, id="a megabyte"),
        pytest.param(b"\xff\xfeok", "\ufffd\ufffdok", id="no UTF-8"),
    ],
)
async def test_the_first_4_kib_of_an_answer_are_kept(
    sandbox: Sandbox, receiver: Receiver, body: bytes, kept: str
) -> None:
    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=body)

    receiver.answer = answer
    await sandbox.collect(callback_url=receiver.url)
    await sandbox.advance(seconds=1)

    (attempt,) = (await kept_callback(sandbox)).attempts
    assert attempt.status_code == 200
    assert attempt.response_body == kept


@pytest.mark.decision("D30")
@pytest.mark.parametrize(
    "url",
    [
        pytest.param(lambda good: good.replace("127.0.0.1", "user:pass@127.0.0.1"), id="userinfo"),
        pytest.param(lambda good: f"{good}#fragment", id="fragment"),
        pytest.param(lambda good: f"{good}/Ɛdwoa?name=Ɛdwoa", id="not ASCII"),
    ],
)
async def test_unusual_addresses_are_called(
    sandbox: Sandbox, receiver: Receiver, url: Callable[[str], str]
) -> None:
    await sandbox.collect(callback_url=url(receiver.url))
    await sandbox.advance(seconds=1)

    assert len(receiver.deliveries) == 1
