"""`sandbox-sim transactions settle` of mode P: by force, and with what was confirmed (D44)."""

import pytest

from tests.cli.asking import as_json, on, printed
from tests.conftest import Sandbox, StartSandbox
from tests.production.client import live

WHY = ("--reason", "they say so", "--by", "ama")

pytestmark = pytest.mark.decision("D44")


@pytest.fixture
async def sent(start_sandbox: StartSandbox) -> Sandbox:
    """Airtime T1, which its network has and does not decide."""
    slow = {"adapter": "simulated", "settle_after_ms": 86_400_000, "notify": "never"}
    sandbox = await live(start_sandbox, {"slow": slow})
    await printed(sandbox, "ledger", "topup", 55, 20, "--mode", "P", "--account", "airtime", *WHY)
    seen = await sandbox.airtime(transaction_id="T1")
    assert seen.code == "202"
    return sandbox


async def test_without_a_reason_it_names_the_options(sent: Sandbox) -> None:
    result = await on(sent, "transactions", "settle", 55, "T1", "failed")

    assert result.exit_code == 1
    assert result.stderr == ("transaction T1 is of mode P: give --reason and --by\n")


async def test_with_force_it_is_settled_and_the_answer_is_shown(sent: Sandbox) -> None:
    lines = await printed(sent, "transactions", "settle", 55, "T1", "failed", *WHY, "--force")

    assert lines == ["T1 is 001 failed; the network was asked first: network slow says pending"]
    assert (await sent.status("T1")).data["status"] == "001"


async def test_without_a_reason_force_is_a_wrong_usage(sent: Sandbox) -> None:
    result = await on(sent, "transactions", "settle", 55, "T1", "failed", "--force")

    assert result.exit_code == 2
    assert "--force needs --reason" in result.stderr


async def test_what_was_confirmed_is_settled_and_shown(sent: Sandbox) -> None:
    (attempt,) = (await as_json(sent, "transactions", "show", 55, "T1"))["attempts"]
    confirmed = ("--amount", "8.50", "--network-id", attempt["network_id"], "--force")
    await printed(sent, "transactions", "settle", 55, "T1", "000", *WHY, *confirmed)

    found = await as_json(sent, "transactions", "show", 55, "T1", "--mode", "P")
    (attempt,) = found["attempts"]
    assert (attempt["amount"], attempt["confirmed_amount"]) == ("10.5", "8.50")
    (decision,) = attempt["decisions"]
    assert (decision["amount"], decision["network_id"]) == ("8.50", attempt["network_id"])


@pytest.mark.parametrize("option", [("--amount", "8"), ("--network-id", "N1")])
async def test_the_sandbox_settles_what_was_asked_for(
    sandbox: Sandbox, option: tuple[str, str]
) -> None:
    await sandbox.collect()

    result = await on(sandbox, "transactions", "settle", 55, "T1", "000", *option)

    assert result.exit_code == 1
    assert "transaction T1 is of mode S: leave out reason, by, amount" in result.stderr
    assert (await sandbox.status("T1")).data["status"] == "002"
