"""The loop of the status queries, and the book, which keeps a bounded number of orders."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast

from sandbox_sim.demo.checkout import Checkout
from sandbox_sim.demo.orders import Customer, Operation, Order, OrderBook, Stray, Transaction
from sandbox_sim.demo.shop import FollowUp
from tests.demo.conftest import ShopClock


class Failing(FollowUp):
    """The first call of `ask_due` fails."""

    def __init__(self, clock: ShopClock) -> None:
        super().__init__(OrderBook(), cast("Checkout", None), clock)
        self.calls: asyncio.Queue[datetime] = asyncio.Queue()
        self.count = 0

    async def ask_due(self, now: datetime) -> int:
        self.count += 1
        await self.calls.put(now)
        if self.count == 1:
            raise RuntimeError("an internal error")
        return await super().ask_due(now)


async def test_status_queries_run_every_second_also_after_an_error(caplog: Any) -> None:
    clock = ShopClock()
    follow_up = Failing(clock)
    await follow_up.stop()  # before its start, this does nothing
    follow_up.start()

    for _ in range(2):
        await clock.sleepers(1)
        clock.advance(1)
        assert await follow_up.calls.get() == clock.now()
    await follow_up.stop()

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
        book.begin(order, transaction)
    for number in range(60):
        book.keep_stray(Stray(AT, f"T{number}", "000", Decimal(1)))

    assert len(list(book)) == 1000
    assert book.of_key("key-0") is None
    assert book.of_purchase("purchase-0") is None
    assert book.of_transaction("T0") is None
    assert book.of_transaction("T1000") is not None
    assert [each.transaction_id for each in book.strays] == [f"T{n}" for n in range(10, 60)]
