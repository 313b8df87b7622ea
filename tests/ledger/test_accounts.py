"""The balances of services in mode S: charges, refunds, checks and movements."""

from decimal import Decimal

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.operations import PAYMENTS, Operation
from sandbox_sim.ports import Store, Unit
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.values.vocabulary import Wallet
from tests.records.samples import settled, transaction
from tests.sample_records import NOW, SERVICE, postings_of


@pytest.fixture
def store() -> Store:
    return MemoryStore(VirtualClock())


@pytest.mark.spec("sandbox.10")
@pytest.mark.decision("D22", "D24")
async def test_units_are_charged_while_enough_are_left_and_refunded(store: Store) -> None:
    accounts = Accounts(sms_initial_units=3)

    async def work(unit: Unit) -> None:
        left = [await accounts.charge(unit, SERVICE, units, "M1", NOW) for units in (2, 2, 1)]
        assert left == [1, None, 0]
        await accounts.refund(unit, SERVICE, 2, "M1", NOW)
        assert await accounts.topup(unit, SERVICE, 5, NOW) == 7

    await store.run(work)

    reasons = [each.reason for each in await store.run(lambda unit: postings_of(unit, SERVICE))]
    assert reasons == ["opening", "charge", "charge", "refund", "topup"]
    balance = await store.run(lambda unit: accounts.balance(unit, SERVICE, Wallet.SMS, NOW))
    assert balance.available == 7


@pytest.mark.decision("D13", "D21")
@pytest.mark.parametrize(
    ("live", "checked"),
    [
        (False, {Operation.PAYOUT: Wallet.PAYOUT}),
        (
            True,
            {
                **dict.fromkeys((Operation.PAYOUT, Operation.BILL), Wallet.PAYOUT),
                Operation.AIRTIME: Wallet.AIRTIME,
            },
        ),
    ],
)
def test_a_wallet_must_cover_payouts_and_with_live_balances_all_spending(
    live: bool, checked: dict[Operation, Wallet]
) -> None:
    found = {each: Accounts(live=live).wallet_to_check(each) for each in PAYMENTS}

    assert {each: wallet for each, wallet in found.items() if wallet} == checked


@pytest.mark.spec("sandbox.9")
@pytest.mark.decision("D21")
@pytest.mark.parametrize(("live", "after"), [(False, "100000"), (True, "100010.50")])
async def test_live_balances_move_and_fixed_ones_stay(store: Store, live: bool, after: str) -> None:
    accounts = Accounts(live=live)

    async def work(unit: Unit) -> list[Decimal]:
        await accounts.post(unit, transaction())
        before = await accounts.reported_balance(unit, SERVICE, Wallet.COLLECTION, NOW)
        await accounts.post(unit, settled())
        return [before, await accounts.reported_balance(unit, SERVICE, Wallet.COLLECTION, NOW)]

    assert await store.run(work) == [Decimal(100_000), Decimal(after)]
