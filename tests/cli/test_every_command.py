"""Every command of docs/control-api.md as a real process, against a gateway over a real socket."""

import asyncio
import sys

import pytest

from tests.conftest import Sandbox

COMMANDS = """
trigger collect --set transaction_id=T1 --no-wait
trigger sms --no-wait
transactions list
transactions show 55 T1
transactions settle 55 T1 cancelled
clock advance 5m
clock freeze
clock resume
clock show
callbacks list
callbacks wait --match transaction_id=T1
callbacks resend --failed
sms list
sms wait
requests list
requests find --match transaction_id=T1
requests wait
overrides add --status 003 --once
overrides list
overrides clear
faults add --status 429 --once
faults list
faults clear
ledger show
ledger topup 55 10
inbox show trigger
snapshot save before
snapshot list
reset
snapshot load before
snapshot delete before
seed --seed 7 --count 3 --service-id 77
readyz
config check
config show
"""


async def test_each_does_its_work_and_exits_0(sandbox: Sandbox) -> None:
    for command in COMMANDS.strip().splitlines():
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "sandbox_sim", "--endpoint-url", sandbox.url, *command.split()),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        printed, complaints = await process.communicate()

        assert (command, process.returncode, complaints) == (command, 0, b"")
        assert printed


@pytest.mark.parametrize("command", ["callbacks show nothing", "sms show nothing", "doctor {url}"])
async def test_what_fails_exits_1_and_says_why(sandbox: Sandbox, command: str) -> None:
    words = command.format(url=f"{sandbox.url}/_sandbox/inbox/shop").split()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "sandbox_sim", "--endpoint-url", sandbox.url, *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()

    assert (process.returncode, bool(printed)) == (1, True)
