"""Transactions and hosted card pages, as a unit of work reads and writes them."""

from collections.abc import Sequence
from typing import Protocol

from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.payments.card_page import CardPage
from sandbox_sim.domain.payments.transactions import Transaction


class PaymentRecords(Protocol):
    """The transactions of services, and the hosted pages of card payments."""

    async def transaction(self, service_id: int, transaction_id: str) -> Transaction | None:
        """The newest transaction with this id of the client; None if none is left, or it expired.

        Locks the service and the id, so two payments with one `transaction_id` run in turn.
        """
        ...

    async def transaction_by_network_id(
        self, service_id: int, network_transaction_id: str
    ) -> Transaction | None:
        """The transaction with this id of ours, also where a newer one has its `transaction_id`.

        One that is expired is found as long as it has still to be settled by a job; None for one
        that is not kept any more. Locks the id.
        """
        ...

    async def add_transaction(self, transaction: Transaction) -> None:
        """Add a new one. From now on `transaction` finds it by its `transaction_id`.

        Does not lock: read that id with `transaction` first where a second one matters.
        """
        ...

    async def save_transaction(self, transaction: Transaction) -> None:
        """Replace one that was read in this unit. Does not lock; the read has."""
        ...

    async def list_transactions(self, listing: Listing) -> Sequence[Transaction]:
        """A page of the kept transactions of mode S, newest first.

        Ids are `network_transaction_id`. After the id of one of mode P the page has those that did
        not begin later. Does not lock.
        """
        ...

    async def card_page(self, card_page_id: str) -> CardPage | None:
        """The hosted page with this id; None if there is none, or it expired. Locks the id."""
        ...

    async def add_card_page(self, page: CardPage) -> None:
        """Add a new one. Does not lock: its id is new."""
        ...
