"""The payments of production mode and their attempts, as a unit of work reads and writes them.

No reset, snapshot or expiry touches them. Their transactions are kept apart from those of mode S,
so both modes may use one `service_id` and one `transaction_id`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.networks.attempts import Attempt, AttemptQuery
from sandbox_sim.domain.payments.transactions import Transaction


class AttemptRecords(Protocol):
    """Transactions of mode P, and their attempts at networks.

    Locks. All records of one payment share one lock, under its `network_transaction_id`. A unit
    that also posts to the books takes this lock first.
    """

    async def add_live_transaction(self, transaction: Transaction) -> bool:
        """Add a new one; False, and nothing is added, where the service has this `transaction_id`.

        The store decides by a unique key. Where another unit is adding the same key, this waits for
        its end.
        """
        ...

    async def live_transaction(self, service_id: int, transaction_id: str) -> Transaction | None:
        """The transaction with this id of the client. Does not lock."""
        ...

    async def live_payment(self, network_transaction_id: str) -> Transaction | None:
        """The transaction with this id of ours. Locks the payment."""
        ...

    async def save_live_transaction(self, transaction: Transaction) -> None:
        """Replace one that was read in this unit. Does not lock; the read has."""
        ...

    async def delete_live_transaction(self, transaction: Transaction) -> None:
        """Delete one: its `transaction_id` is free again. Its attempts stay."""
        ...

    async def list_live_transactions(self, listing: Listing) -> Sequence[Transaction]:
        """A page, newest first; ids are `network_transaction_id`.

        After the id of one of mode S the page has those that began earlier. Does not lock.
        """
        ...

    async def add_attempt(self, attempt: Attempt, request: str) -> None:
        """Add a new one, with the request that goes out as JSON."""
        ...

    async def attempt(self, attempt_id: str) -> Attempt | None:
        """The attempt with this id. Locks its payment."""
        ...

    async def save_attempt(self, attempt: Attempt) -> None:
        """Replace one that was read in this unit; a final one loses its saved request."""
        ...

    async def saved_request(self, attempt_id: str) -> str:
        """The request of an attempt, as it was added; empty once it is final. Does not lock."""
        ...

    async def find_attempts(
        self, network: str, *, reference: str = "", network_id: str = ""
    ) -> Sequence[str]:
        """The ids of at most two attempts with this reference or network id. Does not lock.

        Two say that the reference is not enough: services may share one.
        """
        ...

    async def attempts_of(self, network_transaction_id: str) -> Sequence[Attempt]:
        """The attempts of a payment, oldest first. Does not lock."""
        ...

    async def list_attempts(self, query: AttemptQuery) -> Sequence[Attempt]:
        """A page of attempts, newest first. Does not lock."""
        ...

    async def open_attempts(self) -> Mapping[str, int]:
        """How many attempts of each network are open; those without one are left out."""
        ...

    async def doubtful_attempts(self, opened_before: datetime) -> Sequence[Attempt]:
        """The attempts that a person may have to decide about, oldest first. Does not lock.

        Those with a mismatch or a contradiction, and those that are open and were made before this
        time; none that a person has settled.
        """
        ...
