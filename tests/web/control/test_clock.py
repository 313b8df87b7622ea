"""Gateway time under /_sandbox/clock: a test reads, advances, freezes, resumes and resets it.

A reset returns to the machine's time, unless later records wait.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.ports.clock import ClockState
from tests.conftest import Sandbox, Seen, StartSandbox
from tests.web.control_api import DEAD, ask, assert_error, only, post


async def advance(sandbox: Sandbox, seconds: object) -> Seen:
    return await post(sandbox, "clock/advance", seconds=seconds)


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


async def set_clock(sandbox: Sandbox, how: str, body: bytes = b"") -> Seen:
    return await ask(sandbox, "POST", f"/_sandbox/clock/{how}", body)


@pytest.mark.parametrize(("how", "delay_ms"), [("resume", 20), ("freeze", 0)])
async def test_resumed_it_does_what_falls_due_and_frozen_what_is_due_now(
    start_sandbox: StartSandbox, how: str, delay_ms: int
) -> None:
    """It goes on from where it stood."""
    sandbox = await start_sandbox(settle_delay_ms=delay_ms)

    answer = await set_clock(sandbox, how)
    await sandbox.collect()

    assert answer.body["frozen"] is (how == "freeze")
    assert answer.body["now"].startswith("2026-01-01T09:00:0")
    seen = await post(sandbox, "inbox/orders/wait", timeout_s=10)
    assert [each["signature"] for each in seen.body["messages"]] == ["valid"]


async def test_frozen_it_stands_still_until_it_is_moved_and_a_reset_of_records_leaves_it(
    sandbox: Sandbox,
) -> None:
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

    await ask(sandbox, "POST", "/_sandbox/reset")
    now = (await ask(sandbox, "GET", "/_sandbox/clock")).body
    assert now == {name: moved[name] for name in now}


async def test_a_leap_that_makes_no_sense_is_told_and_freeze_and_resume_take_nothing(
    sandbox: Sandbox,
) -> None:
    told = {"now": "2026-01-01T09:00:00.000Z", "frozen": True, "shift_s": 0.0}
    for seconds in [-1, "300", None, True, 10**9]:
        assert_error(await advance(sandbox, seconds), 400, "seconds")
        assert (await ask(sandbox, "GET", "/_sandbox/clock")).body == told

    rows = ((b'{"seconds": 5}', "seconds"), (b"[]", "JSON object"), (b"{", "JSON"))
    for how, (body, named) in product(("freeze", "resume"), rows):
        assert_error(await set_clock(sandbox, how, body), 400, named)
        assert (await ask(sandbox, "GET", "/_sandbox/clock")).body == told


async def test_what_cannot_be_kept_is_not_changed(
    start_sandbox: StartSandbox, tmp_path: Path
) -> None:
    sandbox = await start_sandbox(store=f"sqlite:{tmp_path}/state.sqlite3")
    before = (await ask(sandbox, "GET", "/_sandbox/clock")).body
    await sandbox.gateway.store.close()

    assert_error(await set_clock(sandbox, "resume"), 503, "closed")

    assert (await ask(sandbox, "GET", "/_sandbox/clock")).body == before


NOW = datetime(2026, 1, 1, 9, tzinfo=UTC)

SetMachine = Callable[[datetime], None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SetMachine:
    """A function that sets the machine's time; both the machine and the gateway start at 09:00."""

    def set_to(moment: datetime) -> None:
        monkeypatch.setattr(SystemClock, "machine_now", lambda _clock: moment)

    set_to(NOW)
    return set_to


async def reset(sandbox: Sandbox) -> Seen:
    return await ask(sandbox, "POST", "/_sandbox/clock/reset")


def is_the_machines(sandbox: Sandbox) -> bool:
    return sandbox.gateway.clock.state == ClockState()


async def test_it_runs_and_is_the_machines(
    start_sandbox: StartSandbox, machine: SetMachine
) -> None:
    """It may be ahead of the machine's time or behind it."""
    sandbox = await start_sandbox()
    await sandbox.advance(days=2)

    seen = await reset(sandbox)

    assert (seen.status, seen.body["frozen"], seen.body["shift_s"]) == (200, False, 0)
    assert is_the_machines(sandbox)

    behind = await start_sandbox()
    await behind.collect()
    machine(NOW + timedelta(days=300))
    assert (await reset(behind)).status == 200
    assert is_the_machines(behind)


@pytest.mark.usefixtures("machine")
@pytest.mark.decision("D16", "D30")
class TestWhatStillWaits:
    @pytest.mark.parametrize(
        ("begin", "named"),
        [
            (lambda sandbox: sandbox.collect(), "payment T1 of service 55, created"),
            (lambda sandbox: sandbox.sms(), "SMS "),
            (lambda sandbox: sandbox.bulk("0244000001", "0244000002"), "SMS "),
        ],
    )
    async def test_it_is_listed_up_to_twenty_times_and_the_clock_stays(
        self, sandbox: Sandbox, begin: Callable[[Sandbox], Awaitable[Seen]], named: str
    ) -> None:
        await sandbox.advance(hours=1)
        await begin(sandbox)

        seen = await reset(sandbox)

        times = ("2026-01-01T10:00:00.000Z", "the machine's time, 2026-01-01T09:00:00.000Z")
        assert_error(seen, 409, *times, named, "created 2026-01-01T10:00:00.000Z")
        assert seen.body["error"]["code"] == "records_wait"
        assert len(seen.body["error"]["message"].splitlines()) == 3
        assert sandbox.gateway.clock.now() == NOW + timedelta(hours=1)

        for number in range(25):
            await sandbox.collect(transaction_id=f"P{number}")
        many = await reset(sandbox)
        assert_error(many, 409, "and more")
        assert len(many.body["error"]["message"].splitlines()) == 23

        await sandbox.advance(seconds=1)
        assert (await reset(sandbox)).status == 200

    async def test_a_callback_that_retries_or_is_held_back(self, sandbox: Sandbox) -> None:
        await sandbox.advance(hours=1)
        await sandbox.collect(callback_url=DEAD)
        await sandbox.advance(seconds=1)
        callback = await only(sandbox, "callbacks")

        assert_error(await reset(sandbox), 409, f"callback {callback['id']} of service 55")

        await sandbox.advance(minutes=10)
        await post(sandbox, "overrides", match={}, callback={"reorder": True})
        await sandbox.collect(transaction_id="T2")
        await sandbox.advance(seconds=1)
        held_back = (await reset(sandbox)).body["error"]["message"]
        assert held_back.count("callback ") == 1

        await sandbox.advance(minutes=10)
        assert (await reset(sandbox)).status == 200


@pytest.mark.usefixtures("machine")
async def test_what_was_created_before_the_machines_time_or_waits_for_a_person_does_not(
    start_sandbox: StartSandbox,
) -> None:
    """The next attempt of such a callback may be due after the machine's time."""
    sandbox = await start_sandbox()
    await sandbox.collect(callback_url=DEAD)
    await post(sandbox, "overrides", match={}, delay_ms=60_000, times=2)
    await sandbox.sms()
    await sandbox.collect(transaction_id="T2")
    await sandbox.advance(seconds=0)
    assert (await reset(sandbox)).status == 200

    pending = await start_sandbox()
    await post(pending, "overrides", match={}, outcome={"status": "pending"})
    await pending.advance(hours=1)
    await pending.collect()
    assert (await reset(pending)).status == 200
