"""`sandbox-sim clock show | advance | freeze | resume`, `reset` and `seed`."""

import re
from datetime import timedelta

from sandbox_sim.ports.clock import ClockState
from tests.cli.asking import as_json, columns, on, printed
from tests.conftest import Sandbox


async def test_the_time_that_it_is_and_its_difference_in_milliseconds(sandbox: Sandbox) -> None:
    assert await printed(sandbox, "clock", "show") == ["frozen at 2026-01-01T09:00:00.000Z"]

    for shift, said in (
        (timedelta(0), ""),
        (timedelta(minutes=5), ", 300 s from the machine's time"),
        (timedelta(days=30, milliseconds=1), ", 2592000.001 s from the machine's time"),
        (timedelta(microseconds=-4), ""),
    ):
        sandbox.gateway.clock.set_to(ClockState(shift))
        (now,) = await printed(sandbox, "clock", "show")
        assert re.fullmatch(f"[0-9T:.-]+Z{re.escape(said)}", now)


async def test_it_goes_on_is_frozen_and_comes_back_to_the_machines(sandbox: Sandbox) -> None:
    (gone,) = await printed(sandbox, "clock", "resume")
    assert gone.startswith("2026-01-01T09:00:0")

    (frozen,) = await printed(sandbox, "clock", "freeze")
    assert frozen.startswith("frozen at 2026-01-01T09:00:0")
    assert await printed(sandbox, "clock", "show") == [frozen]
    assert (await as_json(sandbox, "clock", "freeze"))["frozen"] is True

    (now,) = await printed(sandbox, "clock", "reset")
    assert re.fullmatch("[0-9T:.-]+Z", now)
    assert sandbox.gateway.clock.state == ClockState()


async def test_reset_lists_what_still_waits(sandbox: Sandbox) -> None:
    await sandbox.advance(days=20_000)
    await sandbox.collect()

    result = await on(sandbox, "clock", "reset")

    assert (result.exit_code, result.stdout) == (1, "")
    head, waiting, hint = result.stderr.splitlines()
    assert "cannot go back to the machine's time" in head
    assert "payment T1 of service 55" in waiting
    assert hint.startswith("advance the clock until they are done")


async def test_a_list_has_both_times_where_they_differ(sandbox: Sandbox) -> None:
    await sandbox.sms()

    *_, both = (await on(sandbox, "sms", "list")).stdout.splitlines()
    sandbox.gateway.clock.set_to(ClockState())
    *_, record = (await on(sandbox, "sms", "list")).stdout.splitlines()

    times = "gateway time is 2026-01-01T09:00:00.000Z, the machine's time is [0-9T:.-]+Z"
    assert re.fullmatch(times, both)
    assert "gateway time" not in record


async def test_reset_of_one_service_and_of_all(sandbox: Sandbox) -> None:
    for service_id in (55, 56, 57):
        await sandbox.sms(service_id=service_id)

    assert await printed(sandbox, "reset", "--service-id", 55) == [
        "service 55 was reset; snapshots are kept"
    ]
    assert [await sandbox.sms_balance(each) for each in (55, 56)] == [500, 499]
    assert await printed(sandbox, "reset") == ["all services were reset; snapshots are kept"]
    assert [await sandbox.sms_balance(each) for each in (56, 57)] == [500, 500]


async def test_seed_tells_who_lives_there_now(sandbox: Sandbox) -> None:
    what, headings, *people = await printed(sandbox, "seed", "--count", 4, "--service-id", 56)

    assert what == "4 payments and 4 SMS for service 56, of seed 42:"
    assert columns(headings) == ["name", "customer_number", "nw"]
    assert len(people) == 2
    listed = await as_json(sandbox, "transactions", "list", "--service-id", 56)
    assert len(listed["transactions"]) == 4
