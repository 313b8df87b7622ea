"""`sandbox-sim ledger` in mode P: corrections, and settlement to merchants (D44)."""

import csv
from typing import Any

import pytest

from tests.cli.asking import as_json, columns, on, printed
from tests.conftest import Sandbox, StartSandbox
from tests.production.client import live, settled

WHY = ("--reason", "by letter", "--by", "ama", "--reference", "letter 12")

pytestmark = pytest.mark.decision("D44")


@pytest.fixture
async def late(start_sandbox: StartSandbox) -> Sandbox:
    """Collection T1, which a person called failed and whose network says success a minute later."""
    slow = {"adapter": "simulated", "settle_after_ms": 50_000, "notify": "never"}
    sandbox = await live(start_sandbox, {"slow": slow})
    assert (await sandbox.collect(transaction_id="T1")).code == "202"
    await printed(sandbox, "transactions", "settle", 55, "T1", "failed", *WHY[:4], "--force")
    await settled(sandbox, minutes=1)
    return sandbox


async def entries(sandbox: Sandbox) -> list[dict[str, Any]]:
    found = await as_json(sandbox, "transactions", "show", 55, "T1")
    return list(found["entries"])


async def test_what_stands_in_suspense_is_listed_and_moved_to_the_service(late: Sandbox) -> None:
    head, item = await printed(late, "ledger", "suspense")
    assert columns(head)[2:] == ["transaction_id", "network", "amount", "asset"]
    assert columns(item)[1:] == ["55", "T1", "slow", "10.5", "GHS"]

    (line,) = await printed(late, "ledger", "resolve", 55, "T1", "--to", "service", *WHY)

    assert line.endswith("10.5 from suspense/GHS to service/55/collection/GHS, resolved")
    assert await printed(late, "ledger", "suspense") == ["nothing is in suspense"]
    (entry,) = await entries(late)
    assert entry["manual"] == {
        "by": "ama",
        "reason": "by letter",
        "reference": "letter 12",
        "reverses": None,
        "ends_at": None,
    }


async def test_what_is_resolved_is_not_resolved_again(late: Sandbox) -> None:
    await printed(late, "ledger", "resolve", "T1", "--to", "fees", *WHY)

    result = await on(late, "ledger", "resolve", "T1", "--to", "fees", *WHY)

    assert result.exit_code == 1
    assert result.stderr == "nothing is in suspense for payment T1\n"


async def test_a_correction_is_written_and_reversed(late: Sandbox) -> None:
    ends = ("--debit", "fees", "--credit", "collection", "--transaction", "T1")
    (line,) = await printed(late, "ledger", "adjust", 55, "2.50", *ends, *WHY)
    assert line.endswith("2.5 from fees/GHS to service/55/collection/GHS, adjusted")
    (entry,) = await entries(late)

    (line,) = await printed(late, "ledger", "reverse", entry["id"], *WHY)

    assert line.endswith("2.5 from service/55/collection/GHS to fees/GHS, undone")
    assert [each["manual"]["reverses"] for each in await entries(late)] == [None, entry["id"]]
    assert (await printed(late, "ledger", "audit"))[0].startswith("3 postings checked")


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


async def test_a_period_is_closed_and_its_statement_sums_to_what_was_paid(late: Sandbox) -> None:
    await printed(late, "ledger", "resolve", "T1", "--to", "service", *WHY)
    await late.collect(transaction_id="T2", amount=20)
    await settled(late, minutes=1)
    await settled(late, days=1)
    assert len(await printed(late, "ledger", "statement", 55)) == 3

    lines = await printed(late, "ledger", "close", 55, "--until", "2026-01-01", *WHY)

    assert lines == [
        "period 1 of service 55, before 2026-01-02T00:00:00.000Z: 30.5 GHS in 2 lines",
        "its lines: sandbox-sim ledger statement 55 --period 1",
    ]
    rows = [*csv.DictReader(await printed(late, "ledger", "statement", 55, "--period", 1))]
    assert [(row["transaction_id"], row["amount"], row["by"]) for row in rows] == [
        ("T1", "10.5", "ama"),
        ("T2", "20", ""),
    ]
    assert len(await printed(late, "ledger", "statement", 55)) == 1
    (posting,) = (await as_json(late, "ledger", "show", "--reason", "closed"))["postings"]
    assert (posting["amount"], posting["manual"]["ends_at"]) == (
        "-30.5",
        "2026-01-02T00:00:00.000Z",
    )


@pytest.mark.parametrize(
    ("until", "says"),
    [
        ("2026-01-01", "a period must end in the past"),
        ("2025-12-31", "nothing to close: 0 lines before 2026-01-01T00:00:00.000Z"),
    ],
)
async def test_a_period_that_cannot_be_closed(late: Sandbox, until: str, says: str) -> None:
    result = await on(late, "ledger", "close", 55, "--until", until, *WHY)

    assert result.exit_code == 1
    assert says in result.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("topup", 55, 20, "--mode", "P"), "--mode P needs --reason"),
        (("topup", 55, 20, "--reason", "stock"), "are for --mode P"),
        (("reverse", 1), "Missing option '--reason'"),
        (("resolve", "T1", *WHY), "Missing option '--to'"),
        (("resolve", "shop", "T1", "--to", "fees", *WHY), "give [SERVICE_ID] ID"),
    ],
)
async def test_wrong_usage(late: Sandbox, words: tuple[object, ...], says: str) -> None:
    result = await on(late, "ledger", *words)

    assert result.exit_code == 2
    assert says in result.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--debit", "fees", "--credit", "clearing"), "debit and credit: one is a wallet"),
        (("--debit", "sms", "--credit", "payout"), "debit and credit: one is a wallet"),
        (("--debit", "fees", "--credit", "purse"), "credit must be the account to credit, one of"),
    ],
)
async def test_a_correction_has_one_wallet(
    late: Sandbox, words: tuple[object, ...], says: str
) -> None:
    result = await on(late, "ledger", "adjust", 55, 1, *words, *WHY)

    assert result.exit_code == 1
    assert says in result.stderr


async def test_without_production_nothing_is_entered(sandbox: Sandbox) -> None:
    result = await on(sandbox, "ledger", "reverse", 1, *WHY)

    assert result.exit_code == 1
    assert result.stderr == "Production mode is off, so no entries of mode P can be made\n"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@A1"])
async def test_a_spreadsheet_gets_what_people_typed_as_text_and_amounts_as_numbers(
    late: Sandbox, text: str
) -> None:
    gives = ("--debit", "fees", "--credit", "collection")
    takes = ("--debit", "collection", "--credit", "fees")
    typed = ("--reason", f"{text},x", "--by", f"{text}b", "--reference", f"{text}c")
    await printed(late, "ledger", "adjust", 55, 3, *gives, *WHY)
    await printed(late, "ledger", "adjust", 55, 2, *takes, *typed)

    rows = [*csv.DictReader(await printed(late, "ledger", "statement", 55))]

    assert [each["amount"] for each in rows] == ["3", "-2"]
    shown = {name: rows[1][name] for name in ("by", "why", "reference")}
    assert shown == {"by": f"'{text}b", "why": f"'{text},x", "reference": f"'{text}c"}
