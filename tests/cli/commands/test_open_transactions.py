"""`sandbox-sim transactions list --open-longer-than` and `transactions ask`, of mode P (D39)."""

import pytest

from tests.cli.asking import columns, on, printed
from tests.conftest import Sandbox, StartSandbox
from tests.production.client import live

SLOW = {"adapter": "simulated", "settle_after_ms": 900_000, "notify": "never"}

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
async def sent(start_sandbox: StartSandbox) -> Sandbox:
    """Payment P1, which its network has and does not decide."""
    sandbox = await live(start_sandbox, {"slow": SLOW})
    seen = await sandbox.collect(transaction_id="P1", request_time="2026-01-31 09:30:00")
    assert seen.code == "202"
    return sandbox


async def test_what_is_open_for_longer_is_listed_with_why(sent: Sandbox) -> None:
    assert await printed(sent, "transactions", "list", "--open-longer-than", "10m") == [
        "no transactions"
    ]

    await sent.advance(seconds=601)
    head, line = await printed(sent, "transactions", "list", "--open-longer-than", "10m")

    assert columns(head)[-1] == "waits because"
    assert columns(line)[2] == "P1"
    assert columns(line)[-1].startswith("network slow says pending; asked ")


async def test_a_duration_that_cannot_be_is_wrong_usage(sent: Sandbox) -> None:
    result = await on(sent, "transactions", "list", "--open-longer-than", "soon")

    assert result.exit_code == 2
    assert "'soon' is not a duration, such as 90, 0.8s, 5m or 1h30m" in result.stderr


async def test_ask_says_what_the_network_said_and_what_is_next(sent: Sandbox) -> None:
    status, said = await printed(sent, "transactions", "ask", "P1")

    assert status == "P1 is 002 pending"
    # The jitter adds up to a second.
    assert said.startswith("network slow says pending; asked once, next at 2026-01-01T09:00:1")

    await sent.advance(minutes=15)
    assert await printed(sent, "transactions", "ask", "P1") == [
        "P1 is 000 successful",
        "network slow says succeeded",
    ]


async def test_ask_about_what_there_is_not_fails(sent: Sandbox) -> None:
    result = await on(sent, "transactions", "ask", "P2")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "there is no 'P2' among the transactions, or it was deleted\n"
