"""Gateway time under /_sandbox/clock: a test reads, advances, freezes and resumes it."""

import json
from pathlib import Path

import pytest

from tests.conftest import Sandbox, Seen, StartSandbox
from tests.web.control_api import ask, assert_error

DEAD = "http://127.0.0.1:9/nobody"


async def advance(sandbox: Sandbox, seconds: object) -> Seen:
    body = json.dumps({"seconds": seconds}).encode()
    return await ask(sandbox, "POST", "/_sandbox/clock/advance", body)


async def test_it_tells_gateway_time(sandbox: Sandbox) -> None:
    seen = await ask(sandbox, "GET", "/_sandbox/clock")

    assert seen.body == {"now": "2026-01-01T09:00:00.000Z", "frozen": True, "shift_s": 0.0}


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


async def test_a_leap_that_makes_no_sense_is_told(sandbox: Sandbox) -> None:
    for seconds in [-1, "300", None, True, 10**9]:
        assert_error(await advance(sandbox, seconds), 400, "seconds")

        seen = await ask(sandbox, "GET", "/_sandbox/clock")
        assert seen.body["shift_s"] == 0


async def set_clock(sandbox: Sandbox, how: str, body: bytes = b"") -> Seen:
    return await ask(sandbox, "POST", f"/_sandbox/clock/{how}", body)


async def test_resumed_it_goes_on_from_where_it_stood_and_does_what_falls_due(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(settle_delay_ms=20)
    await sandbox.collect()

    answer = await set_clock(sandbox, "resume")

    assert answer.body["frozen"] is False
    assert answer.body["now"].startswith("2026-01-01T09:00:0")
    seen = await ask(sandbox, "POST", "/_sandbox/inbox/orders/wait", b'{"timeout_s": 10}')
    assert seen.body["messages"][0]["signature"] == "valid"


async def test_frozen_it_stands_still_until_it_is_moved(sandbox: Sandbox) -> None:
    await set_clock(sandbox, "resume")
    await sandbox.collect()

    frozen = (await set_clock(sandbox, "freeze", b"{}")).body

    assert (await ask(sandbox, "GET", "/_sandbox/clock")).body == frozen
    assert (await set_clock(sandbox, "freeze")).body == frozen, "to freeze it again is no error"
    assert (await sandbox.status()).data["status"] == "002"
    moved = (await advance(sandbox, 5)).body
    assert moved["frozen"] is True
    assert moved["shift_s"] == pytest.approx(frozen["shift_s"] + 5)
    assert (await sandbox.status()).data["status"] == "000"


async def test_what_is_due_now_is_done_on_a_frozen_clock(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(settle_delay_ms=0)
    await set_clock(sandbox, "freeze")

    await sandbox.collect()

    seen = await ask(sandbox, "POST", "/_sandbox/inbox/orders/wait", b'{"timeout_s": 10}')
    assert len(seen.body["messages"]) == 1


async def test_a_reset_leaves_it_as_it_is(sandbox: Sandbox) -> None:
    moved = await advance(sandbox, 60)

    await ask(sandbox, "POST", "/_sandbox/reset")

    seen = await ask(sandbox, "GET", "/_sandbox/clock")
    assert {**seen.body, "ran": []} == moved.body


@pytest.mark.parametrize("how", ["freeze", "resume"])
@pytest.mark.parametrize(
    ("body", "named"), [(b'{"seconds": 5}', "seconds"), (b"[]", "JSON object"), (b"{", "JSON")]
)
async def test_freeze_and_resume_take_nothing(
    sandbox: Sandbox, how: str, body: bytes, named: str
) -> None:
    assert_error(await set_clock(sandbox, how, body), 400, named)

    assert (await ask(sandbox, "GET", "/_sandbox/clock")).body["frozen"] is True


async def test_what_cannot_be_kept_is_not_changed(
    start_sandbox: StartSandbox, tmp_path: Path
) -> None:
    sandbox = await start_sandbox(store=f"sqlite:{tmp_path}/state.sqlite3")
    before = (await ask(sandbox, "GET", "/_sandbox/clock")).body
    await sandbox.gateway.store.close()

    assert_error(await set_clock(sandbox, "resume"), 503, "closed")

    assert (await ask(sandbox, "GET", "/_sandbox/clock")).body == before
