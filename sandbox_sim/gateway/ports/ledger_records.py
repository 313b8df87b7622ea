"""Accounts and postings, as a unit of work sees them."""

from collections.abc import Sequence
from typing import Protocol

from sandbox_sim.domain.ledger import Account, Audit, Balance, LedgerLine, LedgerQuery, Posting


class LedgerRecords(Protocol):
    """Accounts and their postings."""

    async def balance(self, service_id: int, account: Account) -> Balance | None:
        """The sum of the account's postings, to the last digit; None before the first."""
        ...

    async def post(self, posting: Posting) -> None:
        """Move an account; the store numbers the posting, for `ledger_page`."""
        ...

    async def postings(self, service_id: int) -> Sequence[Posting]:
        """Every posting of a service, oldest first."""
        ...

    async def ledger_page(self, query: LedgerQuery) -> Sequence[LedgerLine]:
        """The first `limit` lines that the query admits, newest first.

        Numbers rise from posting to posting over all services, whatever `at` says, and may leave
        gaps; they are above 0 and never change. A store seeks the number in `after` and does not
        count its way there, so that any page of a service, or of all, costs what is on it; only
        the other filters may make it look at every line.
        """
        ...

    async def audit(self, service_id: int | None) -> Sequence[Audit]:
        """Each account of a service, or of all (None), as its balance and its postings have it.

        In any order: every account that has a balance or a posting; what it does not have counts
        as 0. Both figures are of the same moment. The sum is added up from the postings, to the
        last digit, so this reads all of them: nothing that a page or a payment should wait for.
        """
        ...
