"""An audit adds up the whole ledger in parts, and names each broken rule (D39)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ledger import ledger_control
from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.ledger.ledger_control import Audit, Ledger, LedgerPage, Violation
from sandbox_sim.operations import Operation
from sandbox_sim.records.ledger import (
    Account,
    AccountKind,
    Balance,
    LedgerLine,
    LedgerQuery,
    ManualEntry,
    Reason,
    Transfer,
    our_account,
)
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet
from tests.live_records import CLEARING, COLLECTION, LIVE, PAYOUT, paid_in, set_aside
from tests.production.desk import FAILED, SUCCEEDED, Desk
from tests.sample_records import NOW, SERVICE, account_of, posting
from tests.units import unit_of

pytestmark = pytest.mark.decision("D39")

OTHER = 56


async def a_desk() -> Desk:
    """A desk with a payout that succeeded and one that failed."""
    desk = Desk()
    await desk.fund("100")
    for number, outcome in enumerate((SUCCEEDED, FAILED)):
        await desk.pay(operation=Operation.PAYOUT, transaction_id=f"T{number}")
        desk.first.statuses.append(outcome)
        await desk.wait(seconds=15)
    return desk


@pytest.mark.parametrize("at_once", [1, 3, 5_000])
async def test_an_audit_in_parts_of_any_size_finds_a_sound_ledger_sound(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_control, "PAGE_SIZE", at_once)
    desk = await a_desk()

    result = await desk.ledger.audit()

    assert result == ((), 5)
    assert (await desk.ledger.balances(None, None)).wallets[PAYOUT].available == Decimal("89.50")


async def test_a_reset_between_two_parts_of_an_audit_breaks_no_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger_control, "PAGE_SIZE", 1)
    clock = VirtualClock()
    store = MemoryStore(clock)
    resets = [SERVICE]

    class LedgerOfAnyService(Ledger):
        async def page(self, query: LedgerQuery) -> LedgerPage:
            while resets:
                await unit_of(store).reset(resets.pop())
            return await super().page(query)

    ledger = LedgerOfAnyService(store, clock, Accounts(), live=False)
    await ledger.topup(SERVICE, 5)
    await ledger.topup(OTHER, 5)

    assert await ledger.audit() == ((), 2)


async def test_an_audit_finds_and_logs_a_wrong_balance(caplog: pytest.LogCaptureFixture) -> None:
    desk = await a_desk()

    async def tamper(unit: Any) -> None:
        """Change the balance as only a bug could."""
        balances = unit._live_services[PAYOUT.service_id].balances
        balances[PAYOUT] = balances[PAYOUT]._replace(available=Decimal(-1))

    await desk.store.run(tamper)

    found = {each.rule for each in (await desk.ledger.audit()).violations}

    assert found == {"no wallet is overdrawn", "a balance is the sum of its transfers"}
    assert "the ledger breaks a rule" in caplog.text


async def test_transfers_are_listed_newest_first_in_pages() -> None:
    ledger, query = (await a_desk()).ledger, LedgerQuery(mode=LIVE, limit=3)

    first = await ledger.page(query)
    second = await ledger.page(replace(query, after=first.next))

    kinds = [line.transfer.kind.value for line in (*first.lines, *second.lines)]
    assert kinds == ["void", "pending", "post", "pending", "posted"]
    assert second.next is None


@pytest.mark.parametrize("live", [True, False])
async def test_balances_are_sorted_and_include_our_accounts_only_without_filter(live: bool) -> None:
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


PENDING = LedgerLine(2, set_aside("10"))

PAID_IN_AND_PENDING = [paid_in("100", PAYOUT), PENDING.transfer]


def balance(available: int, pending: int = 0) -> Balance:
    return Balance(Decimal(available), Decimal(pending), NOW)


def found(
    transfers: Sequence[Transfer],
    wallets: Mapping[Account, Balance],
    sums: Mapping[Account, Decimal],
) -> tuple[Violation, ...]:
    audit, lines = Audit(), [LedgerLine(number, each) for number, each in enumerate(transfers, 1)]
    audit.add(lines[::-1])
    assert audit.lines == len(transfers)
    return audit.violations(wallets, sums)


@pytest.mark.parametrize(
    ("end", "has", "clearing"),
    [
        ([], balance(90, 10), -100),
        ([PENDING.voided(NOW)], balance(100), -100),
        ([PENDING.posted(NOW, CLEARING)], balance(90), -90),
        ([PENDING.posted(NOW, CLEARING, Decimal(4))], balance(96), -96),
    ],
)
def test_a_sound_ledger_breaks_no_rule(end: list[Transfer], has: Balance, clearing: int) -> None:
    assert found([*PAID_IN_AND_PENDING, *end], {PAYOUT: has}, {CLEARING: Decimal(clearing)}) == ()


VOID = PENDING.voided(NOW)


@pytest.mark.parametrize(
    ("end", "has", "clearing", "rules"),
    [
        ([], balance(91, 10), -100, ["a balance is the sum of its transfers"]),
        ([], balance(91, 9), -100, ["what is pending is the sum of open transfers"]),
        ([], balance(90, 10), -99, ["a balance is the sum of its transfers"]),
        ([VOID, VOID], balance(100), -100, ["a pending transfer ends once"]),
        (
            [PENDING.posted(NOW, CLEARING, Decimal(11))],
            balance(89),
            -89,
            ["at most what was pending is posted"],
        ),
        (
            [VOID, VOID._replace(pending=1)],
            balance(100),
            -100,
            ["a transfer ends a pending transfer"],
        ),
        (
            [PENDING.transfer._replace(amount=Decimal(95))],
            balance(-5, 105),
            -100,
            ["no wallet is overdrawn"],
        ),
    ],
)
def test_a_violation_is_named_by_its_rule(
    end: list[Transfer], has: Balance, clearing: int, rules: list[str]
) -> None:
    broken = found([*PAID_IN_AND_PENDING, *end], {PAYOUT: has}, {CLEARING: Decimal(clearing)})

    assert [each.rule for each in broken] == rules


def test_each_wallet_is_compared_with_its_transfers_and_may_be_empty() -> None:
    (broken,) = found([], {PAYOUT: balance(1)}, {})
    assert broken.detail == "service/55/payout/GHS of mode P has 1 and its transfers sum to 0"

    all_of_it = [paid_in("100", PAYOUT), set_aside("100")]
    assert found(all_of_it, {PAYOUT: balance(0, 100)}, {CLEARING: Decimal(-100)}) == ()

    # In mode S there is a wallet and no account of ours.
    assert found([posting(500)], {account_of(): balance(500)}, {}) == ()
    (broken,) = found([posting(500)], {account_of(): balance(499)}, {})
    assert broken.rule == "a balance is the sum of its transfers"


@pytest.mark.decision("D44")
@pytest.mark.parametrize("manual", [None, ManualEntry("", "why"), ManualEntry("ama", "")])
def test_a_manual_entry_without_a_name_or_reason_is_a_violation(manual: ManualEntry | None) -> None:
    correction = paid_in("100")._replace(reason=Reason.ADJUSTED)
    audit = Audit()
    audit.add([LedgerLine(7, correction, manual)])

    assert audit.violations({COLLECTION: balance(100)}, {CLEARING: Decimal(-100)}) == (
        Violation("a manual entry has a name and a reason", "transfer 7 has no name or no reason"),
    )
