"""The orders of the shop, in memory. A real shop keeps them in its database."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from sandbox_sim.demo.orders import Order, Transaction

_MAX_ORDERS: Final = 1000
_MAX_STRAYS: Final = 50


class Stray(NamedTuple):
    """A genuine callback about a transaction that no order has."""

    at: datetime
    transaction_id: str
    status: str
    amount: Decimal


class OrderBook:
    """Orders by number, by key, by purchase and by transaction. Beyond 1,000 it drops the oldest.

    A purchase is one use of the checkout form: a form that is sent twice finds the first order.
    """

    def __init__(self) -> None:
        self._by_key: dict[str, Order] = {}
        self._by_purchase: dict[str, Order] = {}
        self._by_transaction: dict[str, tuple[Order, Transaction]] = {}
        self._next_number = 1001
        self.strays: list[Stray] = []

    def __iter__(self) -> Iterator[Order]:
        """All orders, oldest first."""
        return iter(list(self._by_key.values()))

    def next_number(self) -> int:
        """A new order number."""
        self._next_number += 1
        return self._next_number - 1

    def add(self, order: Order, purchase: str) -> None:
        """Keep an order."""
        self._by_key[order.key] = order
        self._by_purchase[purchase] = order
        while len(self._by_key) > _MAX_ORDERS:
            self._drop(next(iter(self._by_key.values())))

    def begin(self, order: Order, transaction: Transaction) -> None:
        """Add a transaction to an order."""
        order.begin(transaction)
        self._by_transaction[transaction.transaction_id] = order, transaction

    def of_key(self, key: str) -> Order | None:
        """The order with this key."""
        return self._by_key.get(key)

    def of_purchase(self, purchase: str) -> Order | None:
        """The order of this use of the checkout form."""
        return self._by_purchase.get(purchase)

    def of_transaction(self, transaction_id: str) -> tuple[Order, Transaction] | None:
        """The order with this transaction, and the transaction."""
        return self._by_transaction.get(transaction_id)

    def keep_stray(self, stray: Stray) -> None:
        """Keep a callback without an order for the staff; the same one again changes nothing."""
        same = (stray.transaction_id, stray.status)
        if all((each.transaction_id, each.status) != same for each in self.strays):
            self.strays = [*self.strays, stray][-_MAX_STRAYS:]

    def _drop(self, order: Order) -> None:
        del self._by_key[order.key]
        purchases = [name for name, each in self._by_purchase.items() if each is order]
        for purchase in purchases:
            del self._by_purchase[purchase]
        for transaction in order.transactions:
            self._by_transaction.pop(transaction.transaction_id, None)
