"""Every command of docs/control-api.md, against a gateway over a real socket.

test_client.py runs commands as processes; the start of a process takes most of the time.
"""

import asyncio

import pytest
from click.testing import CliRunner, Result

from sandbox_sim.cli import main
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
clock reset
callbacks list
callbacks wait --match transaction_id=T1
callbacks resend --failed
callbacks retry --all
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
openapi
"""


async def run(sandbox: Sandbox, words: list[str]) -> Result:
    """The result of a command. It runs in a thread, so that the gateway can answer."""
    return await asyncio.to_thread(
        CliRunner().invoke, main, ["--endpoint-url", sandbox.url, *words]
    )


async def test_each_does_its_work_and_exits_0(sandbox: Sandbox) -> None:
    for command in COMMANDS.strip().splitlines():
        result = await run(sandbox, command.split())

        assert (command, result.exit_code, result.stderr) == (command, 0, "")
        assert result.stdout


@pytest.mark.parametrize("command", ["callbacks show nothing", "sms show nothing", "doctor {url}"])
async def test_what_fails_exits_1_and_says_why(sandbox: Sandbox, command: str) -> None:
    url = f"{sandbox.url}/_sandbox/inbox/shop"

    result = await run(sandbox, command.format(url=url).split())

    assert (result.exit_code, bool(result.output)) == (1, True)
