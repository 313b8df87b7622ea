"""`sandbox-sim transactions settle` of mode P: by force, with an amount or id (D44)."""

import pytest

from tests.cli.asking import on, printed
from tests.conftest import Sandbox, StartSandbox
from tests.production.client import live

WHY = ("--reason", "they say so", "--by", "ama")

pytestmark = pytest.mark.decision("D44")


@pytest.fixture
async def sent(start_sandbox: StartSandbox) -> Sandbox:
    """Airtime T1, which its network leaves pending."""
    slow = {"adapter": "simulated", "settle_after_ms": 86_400_000, "notify": "never"}
    sandbox = await live(start_sandbox, {"slow": slow})
    await printed(sandbox, "ledger", "topup", 55, 20, "--mode", "P", "--account", "airtime", *WHY)
    seen = await sandbox.airtime(transaction_id="T1")
    assert seen.code == "202"
    return sandbox


async def test_a_forced_settlement_needs_a_reason_and_shows_the_answer_of_the_network(
    sent: Sandbox,
) -> None:
    settle = ("transactions", "settle", 55, "T1", "failed")
    unsigned = await on(sent, *settle)
    lines = await printed(sent, *settle, *WHY, "--force")

    assert unsigned.exit_code == 1
    assert unsigned.stderr == "transaction T1 is of mode P: give --reason and --by\n"
    assert lines == ["T1 is 001 failed; the network was asked first: network slow says pending"]
    assert (await sent.status("T1")).data["status"] == "001"


@pytest.mark.parametrize("option", [("--amount", "8"), ("--network-id", "N1")])
async def test_a_settlement_of_mode_s_refuses_an_amount_and_a_network_id(
    sandbox: Sandbox, option: tuple[str, str]
) -> None:
    await sandbox.collect()

    result = await on(sandbox, "transactions", "settle", 55, "T1", "000", *option)

    assert result.exit_code == 1
    assert "transaction T1 is of mode S: leave out reason, by, amount" in result.stderr
    assert (await sandbox.status("T1")).data["status"] == "002"
