"""docs/books.md, from its first command to its last, on books with a late success (D44)."""

from pathlib import Path

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.docs.commands import sandbox_sim, shape
from tests.docs.pages import Page
from tests.production.client import live, settled

PAGE = Page("docs/books.md")


@pytest.fixture
async def kept(start_sandbox: StartSandbox, tmp_path: Path) -> Sandbox:
    """T1 succeeded after a person settled it as failed; T2 succeeded; T3 is open two days later."""
    mtn = {"adapter": "simulated", "settle_after_ms": 50_000, "notify": "never"}
    file = tmp_path / "state.sqlite3"  # where lines are numbered from 1
    sandbox = await live(start_sandbox, {"mtn": mtn}, store=f"sqlite:{file}")
    await sandbox.collect(transaction_id="T1")
    words = ["transactions", "settle", "55", "T1", "001", "--force", "--reason", "nothing came"]
    await sandbox_sim(sandbox, words)
    await settled(sandbox, minutes=1)
    await sandbox.collect(transaction_id="T2", amount=20)
    await settled(sandbox, minutes=1)
    await settled(sandbox, days=2)
    await sandbox.collect(transaction_id="T3", amount=25)
    return sandbox


@pytest.mark.decision("D44")
async def test_the_page_leads_from_a_late_success_to_a_merchant_who_is_paid(kept: Sandbox) -> None:
    for command in PAGE.commands():
        printed = await sandbox_sim(kept, command.words[1:])

        assert command.output is not None
        assert shape(printed) == shape(command.output)

    assert "7 postings checked" in await sandbox_sim(kept, ["ledger", "audit"])
