"""Accounts and postings, as a unit of work reads and writes them."""

from collections.abc import Sequence
from typing import Protocol

from sandbox_sim.domain.ledger import Account, Audit, Balance, LedgerLine, LedgerQuery, Posting


class LedgerRecords(Protocol):
    """Accounts and their postings."""

    async def balance(self, service_id: int, account: Account) -> Balance | None:
        """The exact sum of the account's postings; None if it has none.

        Locks the account: what is decided by this balance holds until the unit ends.
        """
        ...

    async def post(self, posting: Posting) -> None:
        """Add a posting and change the balance of its account. Locks the account.

        The store numbers the posting for `ledger_page`.
        """
        ...

    async def postings(self, service_id: int) -> Sequence[Posting]:
        """Every posting of a service, oldest first. Does not lock."""
        ...

    async def ledger_page(self, query: LedgerQuery) -> Sequence[LedgerLine]:
        """The first `limit` lines that match the query, newest first. Does not lock.

        A line's number is above 0 and never changes. Numbers rise from posting to posting over all
        services, whatever `at` says, and may have gaps. A store seeks the number in `after` by an
        index, so a page costs what is on it, wherever it is; only the filters by account, reason
        and subject may make it read every line.
        """
        ...

    async def audit(self, service_id: int | None) -> Sequence[Audit]:
        """Each account of a service, or of all (None): its balance, and the sum of its postings.

        In any order. An account is listed if it has a balance or a posting; the one that it does
        not have counts as 0. Both figures are of the same moment. Reads all postings, so neither a
        page nor a payment should wait for it. Does not lock.
        """
        ...
