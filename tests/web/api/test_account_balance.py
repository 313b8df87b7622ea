"""8. Account balance: fixed figures from the interface, or live balances."""

import pytest

from tests.conftest import Sandbox, StartSandbox

OPENING = {
    "payout_balance": 10000,
    "collection_balance": 100000,
    "sms_balance": 500,
    "airtime_balance": 1000,
}


@pytest.mark.spec("sandbox.9")
@pytest.mark.decision("D21", "D22")
async def test_fixed_balances_do_not_change(sandbox: Sandbox) -> None:
    await sandbox.collect(transaction_id="collected")
    await sandbox.card(transaction_id="by card")
    await sandbox.deposit(transaction_id="deposited")
    await sandbox.payout(transaction_id="paid out", amount=10000)
    await sandbox.airtime(transaction_id="airtime", amount=10000)
    await sandbox.bill(transaction_id="bill", amount=10000)
    await sandbox.sms()
    await sandbox.advance(seconds=10)

    assert (await sandbox.balance()).data == OPENING


@pytest.mark.decision("D21")
async def test_only_successful_payments_change_live_balances(start_sandbox: StartSandbox) -> None:
    rows = {
        "collect": ("collection_balance", 100010.5),
        "card": ("collection_balance", 100010.5),
        "deposit": ("payout_balance", 10010.5),
        "payout": ("payout_balance", 9989.5),
        "bill": ("payout_balance", 9989.5),
        "airtime": ("airtime_balance", 989.5),
    }
    for operation, (wallet, moved) in rows.items():
        sandbox = await start_sandbox(balances="live")
        if operation not in {"card", "bill"}:
            for customer_number in ("0244000009", "0540010000"):
                await getattr(sandbox, operation)(customer_number=customer_number)
                await sandbox.advance(seconds=3)
        assert (await sandbox.balance()).data == OPENING, operation

        await getattr(sandbox, operation)(amount=10.5)
        await sandbox.advance(seconds=3)

        assert (await sandbox.balance()).data == OPENING | {wallet: moved}
        assert (await sandbox.balance(56)).data == OPENING


@pytest.mark.spec("endpoint.4")
@pytest.mark.decision("D13", "D21")
async def test_a_payout_above_the_live_balance_is_refused(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(balances="live")

    assert (await sandbox.payout(transaction_id="T1", amount=6000)).code == "202"
    assert (await sandbox.payout(transaction_id="T2", amount=4000.01)).code == "402"
    assert (await sandbox.payout(transaction_id="T3", amount=4000)).code == "202"

    await sandbox.deposit(transaction_id="T4", amount=50)
    await sandbox.advance(seconds=1)

    assert (await sandbox.payout(transaction_id="T5", amount=50)).code == "202"
    await sandbox.advance(seconds=1)
    assert (await sandbox.balance()).data == OPENING | {"payout_balance": 0}
