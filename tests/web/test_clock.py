"""Gateway time under /_sandbox/clock: five minutes of retries take no time at all."""

import json

import pytest

from tests.conftest import Sandbox, Seen, StartSandbox
from tests.web.control_api import ask, assert_error

DEAD = "http://127.0.0.1:9/nobody"


async def advance(sandbox: Sandbox, seconds: object) -> Seen:
    body = json.dumps({"seconds": seconds}).encode()
    return await ask(sandbox, "POST", "/_sandbox/clock/advance", body)


async def test_it_tells_gateway_time(sandbox: Sandbox) -> None:
    seen = await ask(sandbox, "GET", "/_sandbox/clock")

    assert seen.body == {"now": "2026-01-01T09:00:00.000Z", "shift_s": 0.0}


@pytest.mark.decision("D16", "D30")
async def test_what_falls_due_on_the_way_is_done_when_it_answers(sandbox: Sandbox) -> None:
    await sandbox.collect(callback_url=DEAD)

    answer = await advance(sandbox, 301)

    assert answer.body["now"] == "2026-01-01T09:05:01.000Z"
    assert [(job["kind"], job["due_at"]) for job in answer.body["ran"]] == [
        ("settle", "2026-01-01T09:00:01.000Z"),
        ("deliver", "2026-01-01T09:00:01.000Z"),
        ("deliver", "2026-01-01T09:05:01.000Z"),
    ]
    callbacks = await ask(sandbox, "GET", "/_sandbox/callbacks")
    assert len(callbacks.body["callbacks"][0]["attempts"]) == 2


@pytest.mark.spec("sandbox.8")
@pytest.mark.decision("D15")
async def test_fifteen_minutes_forget_a_status(sandbox: Sandbox) -> None:
    await sandbox.collect()
    assert (await sandbox.status()).code == "000"

    await advance(sandbox, 900)

    assert (await sandbox.status()).code == "027"


@pytest.mark.spec("states.sms")
async def test_eight_hundred_milliseconds_send_a_message(sandbox: Sandbox) -> None:
    await sandbox.sms()

    answer = await advance(sandbox, 0.8)

    assert [job["kind"] for job in answer.body["ran"]] == ["settle-sms"]
    assert (await sandbox.history()).data[0]["status"] == "SENT"


@pytest.mark.parametrize("seconds", [-1, "300", None, True, 10**9])
async def test_a_leap_that_makes_no_sense_is_told(sandbox: Sandbox, seconds: object) -> None:
    assert_error(await advance(sandbox, seconds), 400, "seconds")

    seen = await ask(sandbox, "GET", "/_sandbox/clock")
    assert seen.body["shift_s"] == 0


async def test_it_takes_the_control_token(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(control_token="s3same")

    assert_error(await advance(sandbox, 1), 401)
    assert_error(await ask(sandbox, "GET", "/_sandbox/clock"), 401)
