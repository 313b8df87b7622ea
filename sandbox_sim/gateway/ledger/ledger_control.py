"""What the control API does with the ledger: top up SMS units, list postings, audit balances.

Source: D22.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from sandbox_sim.domain.ledger import Account, Audit, LedgerLine, LedgerQuery
from sandbox_sim.gateway.ledger.accounts import Accounts
from sandbox_sim.gateway.ports import Clock, Store, Unit

_ORDER = {account: place for place, account in enumerate(Account)}


class LedgerPage(NamedTuple):
    """A page of lines, newest first.

    next: the `after` of the query for the next page; None at the end.
    audits: of the service in the query, or of all, by service and account. Only the first page has
    them, because an audit adds up all postings.
    """

    lines: Sequence[LedgerLine]
    next: int | None
    audits: Sequence[Audit] | None


class Ledger:
    """The accounts of any service."""

    def __init__(self, store: Store, clock: Clock, accounts: Accounts) -> None:
        self._store = store
        self._clock = clock
        self._accounts = accounts

    async def topup(self, service_id: int, units: int) -> int:
        """Add SMS units to any service, also to one that is new; returns how many it has then."""
        return await self._store.run(
            lambda unit: self._accounts.topup(unit, service_id, units, self._clock.now())
        )

    async def page(self, query: LedgerQuery) -> LedgerPage:
        """The page that the query asks for; the first one has the audit too."""
        # One line more than the limit shows whether another page follows.
        one_more = replace(query, limit=query.limit + 1)

        async def work(unit: Unit) -> LedgerPage:
            found = await unit.ledger_page(one_more)
            lines = found[: query.limit]
            following = lines[-1].number if len(found) > len(lines) else None
            audits = None if query.after is not None else await self._audits(unit, query.service_id)
            return LedgerPage(lines, following, audits)

        return await self._store.run(work)

    async def _audits(self, unit: Unit, service_id: int | None) -> Sequence[Audit]:
        audits = await unit.audit(service_id)
        return sorted(audits, key=lambda audit: (audit.service_id, _ORDER[audit.account]))
