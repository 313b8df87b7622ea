"""`sandbox-sim transactions show` of mode P: in words and lines (D39)."""

import re

import pytest

from tests.cli.asking import as_json, printed
from tests.conftest import Sandbox, StartSandbox
from tests.production.client import live, settled
from tests.web.pages.dashboard_pages import SILENT

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
async def sent(start_sandbox: StartSandbox) -> Sandbox:
    """Payment P1, which its network has not decided for 10 s; given up after 60."""
    sandbox = await live(start_sandbox, {"silent": SILENT})
    await sandbox.collect(transaction_id="P1", request_time="2026-01-31 09:30:00")
    await settled(sandbox, seconds=10)
    return sandbox


def varying(lines: list[str]) -> list[str]:
    """The lines with a `*` for each identifier, and for each time but the first."""
    times = re.compile(r"(?<!^  begun )\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d{11}\b|\b[\da-f-]{36}\b")
    return [times.sub("*", line) for line in lines]


async def test_a_forced_settlement_is_shown_with_its_person_and_reason(sent: Sandbox) -> None:
    await settled(sent, seconds=60)
    waits = await printed(sent, "transactions", "show", "P1")
    why = ("--reason", "on their list", "--by", "ama", "--force")
    await printed(sent, "transactions", "settle", "P1", "000", *why)

    lines = await printed(sent, "transactions", "show", "P1")

    reason = "no outcome: network silent has not decided within 60 s"
    assert f"waits for a person: {reason}" in waits
    at = next(number for number, line in enumerate(lines) if "ama decided" in line)
    assert lines[at].endswith("  ama decided 000 successful")
    assert lines[at + 1 : at + 3] == [
        "    because: on their list",
        "    the network was asked first: network silent says pending",
    ]
    assert not any("transactions ask" in line for line in lines)


async def test_exchanges_are_printed_with_their_option_and_are_in_json(sent: Sandbox) -> None:
    lines = varying(await printed(sent, "transactions", "show", "P1", "--exchanges"))

    submit = next(number for number, line in enumerate(lines) if "  submit: " in line)
    assert lines[submit].startswith("  *  submit: no answer, in ")
    assert lines[submit + 1] == "  > CALL simulated:silent"
    status = next(number for number, line in enumerate(lines) if "  status: answered" in line)
    assert lines[status + 1 :][:3] == [
        "  > CALL simulated:silent",
        "  > reference *",
        "  < pending",
    ]
    assert not any("--exchanges" in line for line in lines)
    (attempt,) = (await as_json(sent, "transactions", "show", "P1"))["attempts"]
    assert [each["purpose"] for each in attempt["exchanges"]][:2] == ["submit", "status"]


@pytest.mark.decision("D44", "D45")
async def test_manual_entries_and_refunds_are_shown(start_sandbox: StartSandbox) -> None:
    network = {"adapter": "simulated", "settle_after_ms": 0}
    sandbox = await live(start_sandbox, {"quick": network})
    await sandbox.collect(transaction_id="P1", request_time="2026-01-31 09:30:00")
    await settled(sandbox, seconds=10)
    of_ama = ("--reason", "a mistake", "--by", "ama")
    moved = ("--debit", "collection", "--credit", "fees", "--transaction", "P1")
    await printed(sandbox, "ledger", "adjust", 55, "0.5", *moved, *of_ama)
    await printed(sandbox, "transactions", "refund", "P1", "--amount", "4", "--id", "R1", *of_ama)

    collection = varying(await printed(sandbox, "transactions", "show", "P1"))
    refund = varying(await printed(sandbox, "transactions", "show", "R1"))

    at = collection.index("manual entries")
    assert collection[at + 1].endswith(
        "ama adjusted 0.5 from service/55/collection/GHS to fees/GHS"
    )
    assert collection[at + 2] == "    because: a mistake"
    assert any(line.startswith("  refund of 4 GHS: R1, ") for line in collection)
    assert "  refund of * by ama: a mistake" in refund
