"""What people enter in the ledger at once, on every store (D44)."""

import asyncio
from decimal import Decimal

import pytest

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.ledger.books import Books
from sandbox_sim.ports import Store, Unit
from sandbox_sim.records.ledger import AccountKind, LedgerLine, Reason, transfer
from tests.live_records import COLLECTION, attempt
from tests.production.desk import SIGNED
from tests.sample_records import NOW, violations

pytestmark = pytest.mark.decision("D44")


async def test_of_several_that_resolve_and_reverse_at_once_one_does(
    store: Store, clock: VirtualClock
) -> None:
    came_in = transfer(Reason.SUSPENDED, COLLECTION, Decimal(5), "10000000001", NOW, network="mtn")
    suspense = came_in._replace(debit=came_in.credit, credit=came_in.debit)

    async def prepare(unit: Unit) -> None:
        await unit.add_attempt(attempt(), "{}")
        await unit.add_transfer(suspense)

    await store.run(prepare)
    books, fees = Books(store, clock, ["mtn"]), AccountKind.FEES

    resolved = await asyncio.gather(
        *(books.resolve("10000000001", fees, None, SIGNED) for _ in range(4)),
        return_exceptions=True,
    )
    (entry,) = (each for each in resolved if isinstance(each, LedgerLine))
    reversed_ones = await asyncio.gather(
        *(books.reverse(entry.number, SIGNED) for _ in range(4)), return_exceptions=True
    )

    for done in (resolved, reversed_ones):
        assert sorted(type(each).__name__ for each in done) == ["BadEntry"] * 3 + ["LedgerLine"]
    (item,) = await books.suspense()
    assert (item.network_transaction_id, item.amount, item.network) == (
        "10000000001",
        Decimal(5),
        "mtn",
    )
    assert await store.run(violations) == ()
