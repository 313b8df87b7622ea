"""The books of production mode: what was posted, and whether the rules of the ledger hold. D39."""

import logging
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from sandbox_sim.domain.double_entry.accounts import Account
from sandbox_sim.domain.double_entry.entries import BookLine, BookQuery
from sandbox_sim.domain.double_entry.holds import Hold
from sandbox_sim.domain.double_entry.invariants import BookAudit, Violation
from sandbox_sim.gateway.ports import Store, Unit

# One unit of work reads so many lines, so that payments need not wait for an audit.
AT_ONCE: Final = 5_000
# An audit of several units may meet a posting that is just being committed; a violation counts if
# it is found each time.
_TRIES: Final = 3

log = logging.getLogger("sandbox_sim.networks")


class BookState(NamedTuple):
    """The balances of all accounts, and the rules that do not hold.

    lines: how many postings were added up.
    """

    balances: Mapping[Account, Decimal]
    violations: Sequence[Violation]
    lines: int


class LiveLedger:
    """Reads the books; changes nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, query: BookQuery) -> Sequence[BookLine]:
        """A page of postings, newest first."""
        return await self._store.run(lambda unit: unit.book_page(query))

    async def check(self) -> BookState:
        """Check every rule of the ledger, over all services; a violation is logged too."""
        state = await self._check()
        for _ in range(_TRIES - 1):
            if not state.violations:
                return state
            state = await self._check()
        for violation in state.violations:
            log.error("the ledger of mode P breaks a rule: %s: %s", *violation)
        return state

    async def _check(self) -> BookState:
        audit = BookAudit()
        balances, holds, lines = await self._store.run(_begin)
        # Postings never change, and newer ones have larger numbers, so that what is read later
        # still belongs to these balances.
        while True:
            audit.add(lines)
            if len(lines) < AT_ONCE:
                break
            query = BookQuery(after=lines[-1].number, limit=AT_ONCE)
            lines = await self.page(query)
        return BookState(balances, audit.violations(balances, holds), audit.lines)


async def _begin(
    unit: Unit,
) -> tuple[Mapping[Account, Decimal], Sequence[Hold], Sequence[BookLine]]:
    balances, holds = await unit.book_balances(None), await unit.open_holds()
    return balances, holds, await unit.book_page(BookQuery(limit=AT_ONCE))
