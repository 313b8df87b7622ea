"""7. Transaction status, which is kept for fifteen minutes."""

import pytest

from tests.conftest import Sandbox, StartSandbox


@pytest.mark.spec("sandbox.8", "states.transactions", "limits")
@pytest.mark.decision("D15")
@pytest.mark.parametrize("customer_number", ["0244000001", "0244000009"])
async def test_a_transaction_is_not_found_fifteen_minutes_after_its_start(
    sandbox: Sandbox, customer_number: str
) -> None:
    await sandbox.collect(customer_number=customer_number)

    await sandbox.advance(minutes=14, seconds=59, milliseconds=999)
    assert (await sandbox.status()).code == "000"

    await sandbox.advance(milliseconds=1)
    assert (await sandbox.status()).code == "027"


@pytest.mark.spec("sandbox.8", "limits")
@pytest.mark.decision("D14", "D15", "D16")
async def test_a_newer_payment_prolongs_the_fifteen_minutes_and_a_settlement_does_not(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(settle_delay_ms=600_000)
    for name in ("T1", "T2"):
        await sandbox.collect(transaction_id=name)
    await sandbox.advance(minutes=10)
    await sandbox.collect(transaction_id="T2")

    await sandbox.advance(minutes=4, seconds=59)
    assert (await sandbox.status()).data["status"] == "000"
    await sandbox.advance(seconds=1)
    assert [(await sandbox.status(name)).code for name in ("T1", "T2")] == ["027", "000"]

    await sandbox.advance(minutes=10)
    assert (await sandbox.status("T2")).code == "027"
