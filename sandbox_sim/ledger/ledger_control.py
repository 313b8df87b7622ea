"""What people ask the ledger: postings, balances, an audit; and top-ups of mode S.

Source: D22, D39.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final, NamedTuple

from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.ledger.audit import Audit, Violation
from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.records.ledger import Account, Balance, LedgerLine, LedgerQuery
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet

# One unit of work reads so many lines, so that payments need not wait for an audit.
AT_ONCE: Final = 5_000

# An audit of several units may meet a transfer that is just being committed; a violation counts if
# it is found each time.
_TRIES: Final = 3

_ORDER = {wallet: place for place, wallet in enumerate(Wallet)}


log = logging.getLogger("sandbox_sim.ledger")


class Balances(NamedTuple):
    """The wallets, by mode, service and wallet, and the accounts of ours in mode P."""

    wallets: Mapping[Account, Balance]
    ours: Mapping[Account, Decimal]


class LedgerPage(NamedTuple):
    """A page of lines, newest first. next: the `after` of the next page; None at the end."""

    lines: Sequence[LedgerLine]
    next: int | None


class AuditResult(NamedTuple):
    """The rules of the ledger that do not hold. lines: how many transfers were added up."""

    violations: Sequence[Violation]
    lines: int


class Ledger:
    """The accounts of any service.

    live: whether production is on.
    """

    def __init__(self, store: Store, clock: Clock, accounts: Accounts, *, live: bool) -> None:
        self._store = store
        self._clock = clock
        self._accounts = accounts
        self.live = live

    async def topup(self, service_id: int, units: int) -> int:
        """Add SMS units in mode S, also to a service that is new; returns how many it has then."""
        return await self._store.run(
            lambda unit: self._accounts.topup(unit, service_id, units, self._clock.now())
        )

    async def page(self, query: LedgerQuery) -> LedgerPage:
        """The page that the query asks for."""
        # One line more than the limit shows whether another page follows.
        one_more = replace(query, limit=query.limit + 1)
        found = await self._store.run(lambda unit: unit.ledger_page(one_more))
        lines = found[: query.limit]
        return LedgerPage(lines, lines[-1].number if len(found) > len(lines) else None)

    async def balances(self, mode: ServiceMode | None, service_id: int | None) -> Balances:
        """What the wallets of a service, or of all, have; of all in mode P also what we have."""
        ours = self.live and service_id is None and mode is not ServiceMode.SANDBOX

        async def work(unit: Unit) -> Balances:
            wallets = await unit.balances(mode, service_id)
            ordered = sorted(wallets.items(), key=_place)
            sums = await unit.live_sums() if ours else {}
            return Balances(dict(ordered), dict(sorted(sums.items(), key=lambda each: each[0])))

        return await self._store.run(work)

    async def audit(self) -> AuditResult:
        """Check every rule of the ledger, over all services; a violation is logged too."""
        result = await self._audit()
        for _ in range(_TRIES - 1):
            if not result.violations:
                return result
            result = await self._audit()
        for violation in result.violations:
            log.error("the ledger breaks a rule: %s: %s", *violation)
        return result

    async def _audit(self) -> AuditResult:
        audit = Audit()
        wallets, sums, lines = await self._store.run(_begin)
        # Transfers never change, and newer ones have larger numbers, so that what is read later
        # still belongs to these balances.
        while True:
            audit.add(lines)
            if len(lines) < AT_ONCE:
                break
            query = LedgerQuery(after=lines[-1].number, limit=AT_ONCE)
            lines = (await self.page(query)).lines
        return AuditResult(audit.violations(wallets, sums), audit.lines)


async def _begin(
    unit: Unit,
) -> tuple[Mapping[Account, Balance], Mapping[Account, Decimal], Sequence[LedgerLine]]:
    balances, sums = await unit.balances(None, None), await unit.live_sums()
    return balances, sums, await unit.ledger_page(LedgerQuery(limit=AT_ONCE))


def _place(balance: tuple[Account, Balance]) -> tuple[int, ServiceMode, int, str]:
    account = balance[0]
    wallet = 0 if account.wallet is None else _ORDER[account.wallet]
    return account.service_id, account.mode, wallet, account.asset
