"""A reversal as a client of mode P and its operator see it, over the simulated network (D45)."""

import pytest

from tests.conftest import StartSandbox
from tests.production.client import live, settled
from tests.web.control_api import get
from tests.web.pages.dashboard_pages import page

pytestmark = pytest.mark.decision("D45")


async def test_its_client_and_its_operator_see_the_success_and_the_reversal(
    start_sandbox: StartSandbox,
) -> None:
    """The collection T1 of 10.50 succeeds and is taken back, and T2 stays."""
    network = {"adapter": "simulated", "reverses": ["10.50"], "reverse_after_ms": 10_000}
    sandbox = await live(start_sandbox, {"staging": network})
    await sandbox.collect()
    await sandbox.collect(transaction_id="T2", amount=10.51)
    await settled(sandbox, seconds=2)
    assert (await sandbox.status("T1")).data["status"] == "000"
    # A final payment is asked about because of a notification once a minute at most.
    await settled(sandbox, seconds=70)

    data = (await sandbox.status("T1")).data
    assert (data["status"], data["message"]) == ("001", "FAILED")
    assert data["status_desc"] == "Transaction Failed: reversed by the network"
    told = [each["body"] for each in await sandbox.inbox()]
    assert sum('"T1"' in each and "001/FAILED" in each for each in told) == 1
    assert (await sandbox.status("T2")).data["status"] == "000"
    assert (await sandbox.balance()).data["collection_balance"] == 10.51

    shown = await get(sandbox, "transactions/55/T1")
    assert [each["status"] for each in shown["timeline"]] == ["002", "000", "001"]
    assert [each["outcome"] for each in shown["attempts"]] == ["reversed"]
    assert shown["waiting"] == []
    html = await page(sandbox, f"?open=t:55:{shown['network_transaction_id']}")
    assert "Settled" in html
    assert "The network reversed it." in html
    assert "the network took it back after its success" in html  # the line of the ledger
