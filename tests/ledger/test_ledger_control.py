"""The whole ledger is added up on demand, in parts (D39)."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ledger import ledger_control
from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.ledger.ledger_control import Ledger
from sandbox_sim.operations import Operation
from sandbox_sim.records.ledger import AccountKind, LedgerQuery, our_account
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet
from tests.live_records import CLEARING, LIVE, PAYOUT, paid_in
from tests.production.desk import FAILED, SUCCEEDED, Desk
from tests.sample_records import posting
from tests.units import unit_of

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

    assert found == {"no wallet is overdrawn", "a balance is the sum of its transfers"}
    assert "the ledger breaks a rule" in caplog.text


async def test_postings_are_listed_newest_first_page_by_page() -> None:
    ledger, query = (await a_desk()).ledger, LedgerQuery(mode=LIVE, limit=3)

    first = await ledger.page(query)
    second = await ledger.page(replace(query, after=first.next))

    kinds = [line.transfer.kind.value for line in (*first.lines, *second.lines)]
    assert kinds == ["void", "pending", "post", "pending", "posted"]
    assert second.next is None


@pytest.mark.parametrize("live", [True, False])
async def test_balances_are_in_order_and_those_of_ours_only_where_all_are_asked_for(
    live: bool,
) -> None:
    clock = VirtualClock()
    store = MemoryStore(clock)
    ledger = Ledger(store, clock, Accounts(), live=live)
    suspense = our_account(AccountKind.SUSPENSE, LIVE, "GHS")

    unit = unit_of(store)
    for number, wallet in ((56, Wallet.PAYOUT), (55, Wallet.SMS), (55, Wallet.PAYOUT)):
        await unit.add_transfer(posting(service_id=number, account=wallet))
    await unit.add_transfer(paid_in("200")._replace(debit=suspense))
    await unit.add_transfer(paid_in(into=PAYOUT))

    found = await ledger.balances(None, None)
    assert [(each.service_id, each.mode, each.wallet) for each in found.wallets] == [
        *((55, "P", wallet) for wallet in (Wallet.PAYOUT, Wallet.COLLECTION)),
        *((55, "S", wallet) for wallet in (Wallet.PAYOUT, Wallet.SMS)),
        (56, "S", Wallet.PAYOUT),
    ]
    assert list(found.ours) == (sorted([CLEARING, suspense]) if live else [])
    for mode, service_id in ((LIVE, 55), (ServiceMode.SANDBOX, None)):
        assert (await ledger.balances(mode, service_id)).ours == {}
