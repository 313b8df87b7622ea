"""The books of mode P are checked live (D39)."""

from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.domain.double_entry import accounts
from sandbox_sim.domain.double_entry.entries import BookQuery, Reason
from sandbox_sim.domain.double_entry.invariants import BookAudit
from sandbox_sim.domain.ledger import Account as Wallet
from sandbox_sim.gateway.ledger import live_ledger
from sandbox_sim.gateway.ledger.live_ledger import LiveLedger
from tests.gateway.networks.desk import FAILED, SUCCEEDED, Desk
from tests.records import SERVICE

PAYOUT = accounts.available(SERVICE, Wallet.PAYOUT, "GHS")

pytestmark = pytest.mark.decision("D39")


async def a_desk() -> Desk:
    """A payout that succeeded and one that failed."""
    desk = Desk()
    await desk.fund("100")
    for number, outcome in enumerate((SUCCEEDED, FAILED)):
        await desk.pay(operation="payout", transaction_id=f"T{number}")
        desk.first.statuses.append(outcome)
        await desk.wait(seconds=15)
    return desk


async def tamper(desk: Desk, change: Any) -> None:
    """Change the books as only a fault could."""

    async def work(unit: Any) -> None:
        change(unit._live)

    await desk.store.run(work)


@pytest.mark.parametrize("at_once", [1, 3, 5_000])
async def test_sound_books_break_no_rule(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_ledger, "AT_ONCE", at_once)
    desk = await a_desk()

    state = await LiveLedger(desk.store).check()

    assert state.violations == ()
    assert state.balances[PAYOUT] == Decimal("89.50")
    assert state.lines == 10


async def test_a_balance_that_is_no_sum_is_found_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = await a_desk()
    await tamper(desk, lambda books: books.balances.update({PAYOUT: Decimal(-1)}))

    found = {each.rule for each in (await LiveLedger(desk.store).check()).violations}

    assert found == {
        "every asset sums to zero",
        "no service owes us",
        "a balance is the sum of its postings",
    }
    assert "the ledger of mode P breaks a rule" in caplog.text


async def test_an_entry_that_is_not_balanced_is_found() -> None:
    desk = await a_desk()
    lines = list(await LiveLedger(desk.store).page(BookQuery(limit=100)))
    audit = BookAudit()
    audit.add(lines[1:])

    (found,) = audit.unbalanced_entries()

    assert found.rule == "every entry is balanced"
    assert found.detail.startswith(f"entry {lines[0].entry} sums to")


async def test_postings_are_listed_newest_first_by_filters() -> None:
    desk = await a_desk()
    ledger = LiveLedger(desk.store)

    every = await ledger.page(BookQuery(limit=100))
    holds = await ledger.page(BookQuery(reason=Reason.HOLD, wallet=Wallet.PAYOUT))
    rest = await ledger.page(BookQuery(after=every[1].number, limit=100))
    others = await ledger.page(BookQuery(service_id=SERVICE + 1))

    assert [each.number for each in every] == sorted((e.number for e in every), reverse=True)
    assert {each.reason for each in holds} == {Reason.HOLD}
    assert list(rest) == list(every[2:])
    assert others == []
