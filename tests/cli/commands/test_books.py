"""`sandbox-sim ledger` in mode P: corrections, and settlement to merchants (D44)."""

import csv

import pytest

from tests.cli.asking import as_json, columns, on, printed
from tests.conftest import Sandbox, StartSandbox
from tests.production.client import live, settled

WHY = ("--reason", "by letter", "--by", "ama", "--reference", "letter 12")

pytestmark = pytest.mark.decision("D44")


@pytest.fixture
async def late(start_sandbox: StartSandbox) -> Sandbox:
    """Collection T1, which a person settled as failed a minute before its network says success."""
    slow = {"adapter": "simulated", "settle_after_ms": 50_000, "notify": "never"}
    sandbox = await live(start_sandbox, {"slow": slow})
    assert (await sandbox.collect(transaction_id="T1")).code == "202"
    await printed(sandbox, "transactions", "settle", 55, "T1", "failed", *WHY[:4], "--force")
    await settled(sandbox, minutes=1)
    return sandbox


async def test_a_resolved_payment_leaves_suspense(late: Sandbox) -> None:
    await printed(late, "ledger", "resolve", 55, "T1", "--to", "service", *WHY)
    again = await on(late, "ledger", "resolve", "T1", "--to", "fees", *WHY)

    assert await printed(late, "ledger", "suspense") == ["nothing is in suspense"]
    assert (again.exit_code, again.stderr) == (1, "nothing is in suspense for payment T1\n")


async def test_a_topup_of_mode_p_is_signed_and_reversed(late: Sandbox) -> None:
    await printed(late, "ledger", "topup", 55, 20, "--mode", "P", *WHY)
    (posting,) = (await as_json(late, "ledger", "show", "--reason", "topup"))["postings"]
    assert posting["manual"]["by"] == "ama"

    await printed(late, "ledger", "reverse", posting["id"], *WHY)

    head, *rows = await printed(late, "ledger", "show", "--account", "sms")
    assert columns(head)[-3:] == ["by", "why", "reference"]
    assert [columns(row)[-3:] for row in rows[:2]] == [["ama", "by letter", "letter 12"]] * 2
    balances = (await as_json(late, "ledger", "show"))["balances"]
    assert [each["balance"] for each in balances if each["account"] == "sms"] == ["0"]


async def test_a_gateway_without_production_refuses_entries(sandbox: Sandbox) -> None:
    result = await on(sandbox, "ledger", "reverse", 1, *WHY)

    assert result.exit_code == 1
    assert result.stderr == "Production mode is off, so no entries of mode P can be made\n"


async def test_a_statement_quotes_typed_texts_and_keeps_amounts_as_numbers(
    late: Sandbox,
) -> None:
    texts = ("=1+1", "+1", "-1", "@A1")
    gives = ("--debit", "fees", "--credit", "collection")
    takes = ("--debit", "collection", "--credit", "fees")
    await printed(late, "ledger", "adjust", 55, 8, *gives, *WHY)
    for text in texts:
        typed = ("--reason", f"{text},x", "--by", f"{text}b", "--reference", f"{text}c")
        await printed(late, "ledger", "adjust", 55, 2, *takes, *typed)

    rows = [*csv.DictReader(await printed(late, "ledger", "statement", 55))]

    assert [each["amount"] for each in rows] == ["8", "-2", "-2", "-2", "-2"]
    shown = [(each["by"], each["why"], each["reference"]) for each in rows[1:]]
    assert shown == [(f"'{text}b", f"'{text},x", f"'{text}c") for text in texts]
