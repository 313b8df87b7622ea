"""Accounts and postings in memory."""

import heapq
import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Final

from sandbox_sim.adapters.stores.memory.state import MemoryState
from sandbox_sim.domain import ledger
from sandbox_sim.domain.ledger import Account, Audit, Balance, LedgerLine, LedgerQuery, Posting

_NUMBER: Final = attrgetter("number")


class MemoryLedger(MemoryState):
    """The part of a `Unit` that stores the ledger."""

    async def balance(self, service_id: int, account: Account) -> Balance | None:
        return self._services[service_id].balances.get(account)

    async def post(self, posting: Posting) -> None:
        service = self._services[posting.service_id]
        before = service.balances.get(posting.account)
        opened = Balance(posting.amount, posting.at)
        balance = opened if before is None else before.after(posting)
        self._set(service.balances, posting.account, balance)
        line = LedgerLine(next(self._numbers), posting)
        service.lines.append(line)
        self.undo.append(service.lines.pop)

    async def postings(self, service_id: int) -> Sequence[Posting]:
        return [line.posting for line in self._services[service_id].lines]

    async def ledger_page(self, query: LedgerQuery) -> Sequence[LedgerLine]:
        lists = [_older(each.lines, query.after) for each in self._services_of(query.service_id)]
        older = heapq.merge(*lists, key=_NUMBER, reverse=True)
        return list(itertools.islice(filter(query.matches, older), query.limit))

    async def audit(self, service_id: int | None) -> Sequence[Audit]:
        chosen = list(self._services) if service_id is None else [service_id]
        return [audit for chosen_id in chosen for audit in self._audited(chosen_id)]

    def _audited(self, service_id: int) -> Iterator[Audit]:
        service = self._services[service_id]
        amounts: dict[Account, list[Decimal]] = defaultdict(list)
        for line in service.lines:
            amounts[line.posting.account].append(line.posting.amount)
        for account in Account:
            balance = service.balances.get(account)
            if balance is not None or account in amounts:
                recorded = Decimal(0) if balance is None else balance.amount
                yield Audit(service_id, account, recorded, ledger.exact_sum(amounts[account]))


def _older(lines: Sequence[LedgerLine], after: int | None) -> Iterator[LedgerLine]:
    """The lines with numbers below `after`, newest first."""
    end = len(lines) if after is None else bisect_left(lines, after, key=_NUMBER)
    return (lines[place] for place in range(end - 1, -1, -1))
