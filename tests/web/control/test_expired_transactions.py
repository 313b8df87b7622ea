"""After 15 minutes only a status query forgets a transaction; people and tests still see it."""

import pytest

from sandbox_sim.cli.record_commands import TRANSACTIONS
from tests.conftest import Sandbox, StartSandbox
from tests.web.control_api import get, ids, only, post
from tests.web.pages.dashboard_pages import page, steps

pytestmark = pytest.mark.decision("D40")


async def test_an_expired_transaction_is_marked_in_lists_pages_and_cli(sandbox: Sandbox) -> None:
    await sandbox.collect()
    await sandbox.advance(seconds=2)
    shown = await only(sandbox, "transactions")
    assert "status query" not in "".join(TRANSACTIONS.lines([shown]))
    assert "Expired for status queries" not in " ".join(steps(await page(sandbox)))

    await sandbox.advance(minutes=15)

    assert (await sandbox.status()).code == "027"
    shown = await only(sandbox, "transactions")
    assert (shown["status"], shown["expired"]) == ("000", True)
    assert [change["status"] for change in shown["timeline"]] == ["002", "000"]
    assert (await get(sandbox, "transactions/55/T1"))["expired"]
    found = await page(sandbox, "?view=payments")
    assert steps(found)[-1].startswith("Expired for status queries 09:15:00.000")
    heading, row = TRANSACTIONS.lines([shown])
    assert "status query" in heading
    assert row.endswith("expired")


async def test_an_expired_pending_transaction_can_be_settled(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(settle_delay_ms=3_600_000)
    await sandbox.collect()
    await sandbox.advance(minutes=20)

    settled = await post(sandbox, "transactions/55/T1/settle", status="003")

    assert settled.body["status"] == "003"
    await sandbox.advance(seconds=0)
    assert (await sandbox.callback())["trans_status"] == "003/CANCELLED"
    assert (await sandbox.status()).code == "027"


async def test_an_expired_id_can_be_used_again_and_keep_transactions_limits_the_list(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(duplicates="reject", keep_transactions=2)
    for number in range(5):
        await sandbox.collect(transaction_id=f"old-{number}")
    await sandbox.advance(minutes=14)
    assert (await sandbox.collect(transaction_id="old-4")).code == "219"

    await sandbox.advance(minutes=2)

    assert (await sandbox.collect(transaction_id="old-4")).code == "202"
    assert await ids(sandbox, "") == ["old-4", "old-4"]


@pytest.mark.decision("D14")
async def test_a_replaced_transaction_stays_and_names_the_newer_one(sandbox: Sandbox) -> None:
    await sandbox.collect()
    await sandbox.advance(minutes=16)
    await sandbox.collect()

    newer, older = (await get(sandbox, "transactions"))["transactions"]
    assert (newer["replaced_by"], older["replaced_by"]) == (None, newer["network_transaction_id"])
    found = await get(sandbox, f"transactions/55/{older['network_transaction_id']}")
    assert found == older
    opened = await page(sandbox, f"?open=t:55:{older['network_transaction_id']}")
    assert any(step.startswith("Replaced by a newer transaction") for step in steps(opened))
    assert list(TRANSACTIONS.lines([older]))[-1].endswith("replaced")
