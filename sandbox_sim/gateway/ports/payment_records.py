"""Transactions and hosted card pages, as a unit of work sees them."""

from collections.abc import Sequence
from typing import Protocol

from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.payments.card_page import CardPage
from sandbox_sim.domain.payments.transactions import Transaction


class PaymentRecords(Protocol):
    """The transactions of services, and the hosted pages of card payments."""

    async def transaction(self, service_id: int, transaction_id: str) -> Transaction | None:
        """The newest transaction of this id that has not expired."""
        ...

    async def transaction_by_network_id(
        self, service_id: int, network_transaction_id: str
    ) -> Transaction | None:
        """Exactly this transaction, even if another took over its id, or it ends late by itself."""
        ...

    async def add_transaction(self, transaction: Transaction) -> None:
        """Save a new one; from now on its `transaction_id` names it."""
        ...

    async def save_transaction(self, transaction: Transaction) -> None:
        """Replace one that was added before."""
        ...

    async def list_transactions(self, listing: Listing) -> Sequence[Transaction]:
        """Transactions that are kept, newest first; ids are `network_transaction_id`."""
        ...

    async def card_page(self, card_page_id: str) -> CardPage | None:
        """The hosted page of this id, until it expires."""
        ...

    async def add_card_page(self, checkout: CardPage) -> None:
        """Save a new one."""
        ...
