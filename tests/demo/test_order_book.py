"""The book keeps a bounded number of orders and strays."""

from datetime import UTC, datetime
from decimal import Decimal

from sandbox_sim.demo.orders import Customer, Operation, Order, OrderBook, Stray, Transaction

AT = datetime(2026, 1, 1, tzinfo=UTC)


def order(number: int) -> Order:
    return Order(
        number=number,
        key=f"key-{number}",
        created_at=AT,
        what="a basket",
        total=Decimal(1),
        currency="GHS",
        customer=Customer("Ama", "0244000001", "MTN"),
        pay_by=Operation.MOBILE_MONEY,
    )


def test_it_keeps_the_newest_thousand_orders_and_fifty_strays() -> None:
    book = OrderBook()
    for number in range(1001):
        each = order(number)
        book.add(each, f"purchase-{number}")
        transaction = Transaction(f"T{number}", Operation.MOBILE_MONEY, Decimal(1), AT, AT)
        book.begin(each, transaction)
    for number in range(60):
        book.keep_stray(Stray(AT, f"T{number}", "000", Decimal(1)))

    assert len(list(book)) == 1000
    assert book.of_key("key-0") is None
    assert book.of_purchase("purchase-0") is None
    assert book.of_transaction("T0") is None
    assert book.of_transaction("T1000") is not None
    assert [each.transaction_id for each in book.strays] == [f"T{n}" for n in range(10, 60)]
