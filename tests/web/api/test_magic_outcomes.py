"""The setting `magic_outcomes`: numbers and amounts that end a payment as the setting says."""

from itertools import product

import pytest

from tests.conftest import StartSandbox
from tests.web.control_api import ask, listed
from tests.web.overriding import PAYMENTS, override, pay

pytestmark = pytest.mark.decision("D35")

FAILED, CANCELLED = "13.37", "13.38"


@pytest.mark.decision("D31")
async def test_an_amount_decides_any_payment_and_its_callback(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(magic_outcomes={FAILED: "001", CANCELLED: "003"})
    outcomes = ((13.37, "001", "FAILED"), (13.38, "003", "CANCELLED"))

    for operation, (amount, status, said) in product(PAYMENTS, outcomes):
        currency = {"currency_val": str(amount)} if operation == "card" else {}
        answer = await pay(sandbox, operation, amount=amount, **currency)
        assert answer.code == ("000" if operation == "card" else "202")
        assert answer.rule == "D35"
        assert (await sandbox.status()).data["status"] == "002"
        await sandbox.advance(seconds=3)

        assert (await sandbox.status()).data["status"] == status
        assert (await sandbox.inbox())[-1]["json"]["trans_status"] == f"{status}/{said}"


async def test_numbers_accounts_cards_and_amounts_decide(start_sandbox: StartSandbox) -> None:
    magic = {
        "0244000003": "003", "233244000004": "003",
        "200000000003": "001", "4242424242424242": "402", "99.99": "500",
    }  # fmt: skip
    sandbox = await start_sandbox(magic_outcomes=magic)
    for last in "134":
        await sandbox.collect(customer_number=f"024400000{last}", transaction_id=f"T{last}")
    await sandbox.bill(account_number="200000000003", transaction_id="bill")
    card = await sandbox.card(customer_number="4242424242424242", transaction_id="card")
    coded = await sandbox.collect(amount=99.99, transaction_id="coded")
    await sandbox.advance(seconds=1)

    statuses = {"T1": "000", "T3": "003", "T4": "003", "bill": "001"}
    for name, status in statuses.items():
        assert (await sandbox.status(name)).data["status"] == status
    assert (card.status, card.code, card.rule) == (402, "402", "D35")
    assert (coded.status, coded.code, coded.rule) == (500, "500", "D35")
    assert (await sandbox.status("coded")).code == "027"


@pytest.mark.decision("D9")
async def test_a_magic_outcome_precedes_only_the_last_digit(start_sandbox: StartSandbox) -> None:
    """An override precedes it, and a number precedes an amount. The journal says why."""
    magic = {"0244000009": "003", "0540010000": "003", "10000.01": "003", FAILED: "001"}
    sandbox = await start_sandbox(magic_outcomes=magic)
    assert (await sandbox.collect(customer_number="0540010000")).code == "019"
    assert (await sandbox.collect(amount=10000.01)).code == "016"

    fields = {"customer_number": "0244000009", "amount": 13.37}
    assert (await sandbox.collect(**fields)).rule == "D35"
    entry, *_ = await listed(sandbox, "requests")
    assert entry["why"] == "the setting magic_outcomes gives 003 to this number"
    shown = (await ask(sandbox, "GET", "/_sandbox/transactions/55/T1")).body
    assert shown["override"]["id"] == "magic_outcomes"
    await override(sandbox, outcome={"status": "000"}, match={"transaction_id": "T2"})
    await sandbox.collect(transaction_id="T2", **fields)
    await override(sandbox, callback={"duplicate": 2}, match={"transaction_id": "T3"})
    await sandbox.collect(transaction_id="T3", **fields)
    await sandbox.advance(seconds=1)

    statuses = [(await sandbox.status(name)).data["status"] for name in ("T1", "T2", "T3")]
    assert statuses == ["003", "000", "003"]
    assert [message["json"]["trans_ref"] for message in await sandbox.inbox()].count("T3") == 2
