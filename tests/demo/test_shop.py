"""The loop of the status queries, and the book, which keeps a bounded number of orders."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast

from sandbox_sim.demo.checkout import Checkout
from sandbox_sim.demo.orders import (
    Customer,
    Operation,
    Order,
    OrderBook,
    Transaction,
    UnmatchedCallback,
)
from sandbox_sim.demo.shop import StatusPoller
from tests.demo.conftest import ShopClock


class Failing(StatusPoller):
    """The first call of `query_due` fails."""

    def __init__(self, clock: ShopClock) -> None:
        super().__init__(OrderBook(), cast("Checkout", None), clock)
        self.calls: asyncio.Queue[datetime] = asyncio.Queue()
        self.count = 0

    async def query_due(self, now: datetime) -> int:
        self.count += 1
        await self.calls.put(now)
        if self.count == 1:
            raise RuntimeError("an internal error")
        return await super().query_due(now)


async def test_status_queries_run_every_second_also_after_an_error(caplog: Any) -> None:
    clock = ShopClock()
    status_poller = Failing(clock)
    await status_poller.stop()  # before its start, this does nothing
    status_poller.start()

    for _ in range(2):
        await clock.sleepers(1)
        clock.advance(1)
        assert await status_poller.calls.get() == clock.now()
    await status_poller.stop()

    assert "the status queries of the shop failed" in caplog.text


AT = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_book_keeps_the_newest_thousand_orders_and_fifty_strays() -> None:
    book = OrderBook()
    for number in range(1001):
        order = Order(
            number=number,
            key=f"key-{number}",
            created_at=AT,
            what="a basket",
            total=Decimal(1),
            currency="GHS",
            customer=Customer("Ama", "0244000001", "MTN"),
            pay_by=Operation.MOBILE_MONEY,
        )
        book.add(order, f"purchase-{number}")
        transaction = Transaction(f"T{number}", Operation.MOBILE_MONEY, Decimal(1), AT, AT)
        book.add_transaction(order, transaction)
    for number in range(60):
        book.add_unmatched(UnmatchedCallback(AT, f"T{number}", "000", Decimal(1)))

    assert len(list(book)) == 1000
    assert book.find_by_key("key-0") is None
    assert book.find_by_purchase("purchase-0") is None
    assert book.find_by_transaction("T0") is None
    assert book.find_by_transaction("T1000") is not None
    assert [each.transaction_id for each in book.unmatched] == [f"T{n}" for n in range(10, 60)]
