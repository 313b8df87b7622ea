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
async def test_an_advance_runs_the_jobs_that_become_due_and_lists_them(sandbox: Sandbox) -> None:
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
async def test_a_resumed_clock_runs_later_jobs_and_a_frozen_clock_jobs_due_now(
    start_sandbox: StartSandbox, how: str, delay_ms: int
) -> None:
    """The clock keeps its time."""
    sandbox = await start_sandbox(settle_delay_ms=delay_ms)

    answer = await set_clock(sandbox, how)
    await sandbox.collect()

    assert answer.body["frozen"] is (how == "freeze")
    assert answer.body["now"].startswith("2026-01-01T09:00:0")
    seen = await post(sandbox, "inbox/orders/wait", timeout_s=10)
    assert [each["signature"] for each in seen.body["messages"]] == ["valid"]


async def test_a_frozen_clock_stays_frozen_after_advance_and_reset(sandbox: Sandbox) -> None:
    await set_clock(sandbox, "resume")
    await sandbox.collect()

    frozen = (await set_clock(sandbox, "freeze", b"{}")).body

    assert (await ask(sandbox, "GET", "/_sandbox/clock")).body == frozen
    assert (await set_clock(sandbox, "freeze")).body == frozen, "freezing it again is allowed"
    assert (await sandbox.status()).data["status"] == "002"
    moved = (await advance(sandbox, 5)).body
    assert moved["frozen"] is True
    assert moved["shift_s"] == pytest.approx(frozen["shift_s"] + 5)
    assert (await sandbox.status()).data["status"] == "000"

    await ask(sandbox, "POST", "/_sandbox/reset")
    now = (await ask(sandbox, "GET", "/_sandbox/clock")).body
    assert now == {name: moved[name] for name in now}


async def test_a_bad_advance_and_a_body_for_freeze_or_resume_are_refused(sandbox: Sandbox) -> None:
    unchanged = {"now": "2026-01-01T09:00:00.000Z", "frozen": True, "shift_s": 0.0}
    for seconds in [-1, "300", None, True, 10**9]:
        assert_error(await advance(sandbox, seconds), 400, "seconds")
        assert (await ask(sandbox, "GET", "/_sandbox/clock")).body == unchanged

    rows = ((b'{"seconds": 5}', "seconds"), (b"[]", "JSON object"), (b"{", "JSON"))
    for how, (body, named) in product(("freeze", "resume"), rows):
        assert_error(await set_clock(sandbox, how, body), 400, named)
        assert (await ask(sandbox, "GET", "/_sandbox/clock")).body == unchanged


async def test_a_change_of_the_clock_that_cannot_be_saved_is_not_made(
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


def has_the_machines_time(sandbox: Sandbox) -> bool:
    return sandbox.gateway.clock.state == ClockState()


async def test_a_reset_clock_runs_and_has_the_machines_time(
    start_sandbox: StartSandbox, machine: SetMachine
) -> None:
    """Before the reset it is ahead of the machine's time, or behind it."""
    sandbox = await start_sandbox()
    await sandbox.advance(days=2)

    seen = await reset(sandbox)

    assert (seen.status, seen.body["frozen"], seen.body["shift_s"]) == (200, False, 0)
    assert has_the_machines_time(sandbox)

    behind = await start_sandbox()
    await behind.collect()
    machine(NOW + timedelta(days=300))
    assert (await reset(behind)).status == 200
    assert has_the_machines_time(behind)


@pytest.mark.usefixtures("machine")
@pytest.mark.decision("D16", "D30")
class TestResetWithWaitingRecords:
    @pytest.mark.parametrize(
        ("begin", "named"),
        [
            (lambda sandbox: sandbox.collect(), "payment T1 of service 55, created"),
            (lambda sandbox: sandbox.sms(), "SMS "),
            (lambda sandbox: sandbox.bulk("0244000001", "0244000002"), "SMS "),
        ],
    )
    async def test_a_reset_is_refused_and_lists_up_to_twenty_waiting_records(
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

    async def test_a_retrying_or_delayed_callback_prevents_a_reset(self, sandbox: Sandbox) -> None:
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
async def test_older_and_undecided_records_allow_a_reset(start_sandbox: StartSandbox) -> None:
    """The next attempt of an older callback may be due after the machine's time."""
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
