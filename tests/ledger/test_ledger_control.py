"""The whole ledger is added up on demand, in parts (D39)."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.ledger import ledger_control
from sandbox_sim.operations import Operation
from sandbox_sim.records.ledger import LedgerQuery
from tests.live_records import LIVE, PAYOUT
from tests.production.desk import FAILED, SUCCEEDED, Desk

pytestmark = pytest.mark.decision("D39")


async def a_desk() -> Desk:
    """A payout that succeeded and one that failed."""
    desk = Desk()
    await desk.fund("100")
    for number, outcome in enumerate((SUCCEEDED, FAILED)):
        await desk.pay(operation=Operation.PAYOUT, transaction_id=f"T{number}")
        desk.first.statuses.append(outcome)
        await desk.wait(seconds=15)
    return desk


@pytest.mark.parametrize("at_once", [1, 3, 5_000])
async def test_a_sound_ledger_breaks_no_rule(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_control, "AT_ONCE", at_once)
    desk = await a_desk()

    result = await desk.ledger.audit()

    assert result == ((), 5)
    assert (await desk.ledger.balances(None, None)).wallets[PAYOUT].available == Decimal("89.50")


async def test_a_balance_that_is_no_sum_is_found_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = await a_desk()

    async def tamper(unit: Any) -> None:
        """Change the balance as only a fault could."""
        balances = unit._live_services[PAYOUT.service_id].balances
        balances[PAYOUT] = balances[PAYOUT]._replace(available=Decimal(-1))

    await desk.store.run(tamper)

    found = {each.rule for each in (await desk.ledger.audit()).violations}

    assert found == {"no service owes us", "a balance is the sum of its transfers"}
    assert "the ledger breaks a rule" in caplog.text


async def test_postings_are_listed_newest_first_page_by_page() -> None:
    ledger, query = (await a_desk()).ledger, LedgerQuery(mode=LIVE, limit=3)

    first = await ledger.page(query)
    second = await ledger.page(replace(query, after=first.next))

    kinds = [line.transfer.kind.value for line in (*first.lines, *second.lines)]
    assert kinds == ["void", "pending", "post", "pending", "posted"]
    assert second.next is None
