"""`sandbox-sim clock show | advance | freeze | resume`, `reset` and `seed`."""

import re
from datetime import timedelta

from sandbox_sim.ports.clock import ClockState
from tests.cli.asking import as_json, columns, on, printed
from tests.conftest import Sandbox


async def test_show_prints_the_time_and_its_difference_from_the_time_of_the_machine(
    sandbox: Sandbox,
) -> None:
    assert await printed(sandbox, "clock", "show") == ["frozen at 2026-01-01T09:00:00.000Z"]

    for shift, suffix in (
        (timedelta(0), ""),
        (timedelta(minutes=5), ", 300 s from the machine's time"),
        (timedelta(days=30, milliseconds=1), ", 2592000.001 s from the machine's time"),
        (timedelta(microseconds=-4), ""),
    ):
        sandbox.gateway.clock.set_to(ClockState(shift))
        (now,) = await printed(sandbox, "clock", "show")
        assert re.fullmatch(f"[0-9T:.-]+Z{re.escape(suffix)}", now)


async def test_the_clock_resumes_freezes_and_resets_to_the_time_of_the_machine(
    sandbox: Sandbox,
) -> None:
    (resumed,) = await printed(sandbox, "clock", "resume")
    assert resumed.startswith("2026-01-01T09:00:0")

    (frozen,) = await printed(sandbox, "clock", "freeze")
    assert frozen.startswith("frozen at 2026-01-01T09:00:0")
    assert await printed(sandbox, "clock", "show") == [frozen]
    assert (await as_json(sandbox, "clock", "freeze"))["frozen"] is True

    (now,) = await printed(sandbox, "clock", "reset")
    assert re.fullmatch("[0-9T:.-]+Z", now)
    assert sandbox.gateway.clock.state == ClockState()


async def test_a_refused_reset_of_the_clock_lists_the_waiting_payments(sandbox: Sandbox) -> None:
    await sandbox.advance(days=20_000)
    await sandbox.collect()

    result = await on(sandbox, "clock", "reset")

    assert (result.exit_code, result.stdout) == (1, "")
    head, waiting, hint = result.stderr.splitlines()
    assert "cannot go back to the machine's time" in head
    assert "payment T1 of service 55" in waiting
    assert hint.startswith("advance the clock until they are done")


async def test_a_list_ends_with_both_times_if_they_differ(sandbox: Sandbox) -> None:
    await sandbox.sms()

    *_, line = (await on(sandbox, "sms", "list")).stdout.splitlines()
    sandbox.gateway.clock.set_to(ClockState())
    *_, message = (await on(sandbox, "sms", "list")).stdout.splitlines()

    times = "gateway time is 2026-01-01T09:00:00.000Z, the machine's time is [0-9T:.-]+Z"
    assert re.fullmatch(times, line)
    assert "gateway time" not in message


async def test_reset_deletes_the_records_of_one_service_or_of_all(sandbox: Sandbox) -> None:
    for service_id in (55, 56, 57):
        await sandbox.sms(service_id=service_id)

    assert await printed(sandbox, "reset", "--service-id", 55) == [
        "service 55 was reset; snapshots are kept"
    ]
    assert [await sandbox.sms_balance(each) for each in (55, 56)] == [500, 499]
    assert await printed(sandbox, "reset") == ["all services were reset; snapshots are kept"]
    assert [await sandbox.sms_balance(each) for each in (56, 57)] == [500, 500]


async def test_seed_prints_the_people_that_it_adds(sandbox: Sandbox) -> None:
    summary, headings, *people = await printed(sandbox, "seed", "--count", 4, "--service-id", 56)

    assert summary == "4 payments and 4 SMS for service 56, of seed 42:"
    assert columns(headings) == ["name", "customer_number", "nw"]
    assert len(people) == 2
    listed = await as_json(sandbox, "transactions", "list", "--service-id", 56)
    assert len(listed["transactions"]) == 4
