"""The ledger of production mode, as a unit of work reads and writes it. Source: D39."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from sandbox_sim.domain.double_entry.accounts import Account
from sandbox_sim.domain.double_entry.entries import BookLine, BookQuery, Entry, Leg
from sandbox_sim.domain.double_entry.holds import Hold


class Books(Protocol):
    """Double entry: balances, entries and holds. No reset and no snapshot touches them."""

    async def enter(self, entry: Entry) -> None:
        """Post an entry and change the balances of its accounts. Locks these accounts by name.

        Raises:
            Overdrawn: an account that is never below zero would be; then nothing is changed.
        """
        ...

    async def book_balances(self, service_id: int | None) -> Mapping[Account, Decimal]:
        """The balance of every account, or of those of one service. Does not lock."""
        ...

    async def book_legs(self, service_id: int | None) -> Sequence[Leg]:
        """What was posted to every account, or to those of one service, oldest first.

        Reads all postings, so no payment should wait for it. Does not lock.
        """
        ...

    async def book_page(self, query: BookQuery) -> Sequence[BookLine]:
        """A page of what was posted, newest first. Does not lock."""
        ...

    async def last_posted_at(self, account: Account) -> datetime | None:
        """When something was posted to an account last; None if never. Does not lock."""
        ...

    async def save_hold(self, hold: Hold) -> None:
        """Add a hold, or replace the one with its id. Does not lock: its payment is locked."""
        ...

    async def hold(self, hold_id: str) -> Hold | None:
        """The hold with this id. Does not lock."""
        ...

    async def open_holds(self) -> Sequence[Hold]:
        """The holds that were neither committed nor voided, oldest first. Does not lock."""
        ...
