"""Reads the ledger for people: lines, balances, an audit; and top-ups of mode S.

`Audit` checks the rules that the ledger must obey at any moment. Source: D22, D39.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final, NamedTuple

from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.records.ledger import (
    MANUAL_REASONS,
    MOVING_KINDS,
    WALLET,
    ZERO,
    Account,
    Balance,
    LedgerLine,
    LedgerQuery,
    TransferKind,
    add,
    ending_problem,
    subtract,
)
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet


class Violation(NamedTuple):
    """A rule of the ledger that is broken, and by what, in words."""

    rule: str
    detail: str


class Audit:
    """Adds up all transfers, newest first, as they are read, in any number of parts.

    lines: how many were added up.
    """

    def __init__(self) -> None:
        self.lines = 0
        self._moved: dict[Account, Decimal] = defaultdict(lambda: ZERO)
        self._open: dict[Account, Decimal] = defaultdict(lambda: ZERO)
        # What posts or voids a pending transfer that is still to be read, by its number.
        self._ends: dict[int, list[LedgerLine]] = {}
        self._violations: list[Violation] = []

    def add(self, lines: Iterable[LedgerLine]) -> None:
        """Count these transfers, each older than the one before."""
        for line in lines:
            self.lines += 1
            number, transfer, entry = line
            if transfer.reason in MANUAL_REASONS and not (entry and entry.by and entry.why):
                detail = f"transfer {number} has no name or no reason"
                self._violations.append(Violation("a manual entry has a name and a reason", detail))
            debit, credit, amount = transfer[:3]
            if transfer.kind in MOVING_KINDS:
                self._moved[debit] = subtract(self._moved[debit], amount)
                self._moved[credit] = add(self._moved[credit], amount)
            if transfer.pending is not None:
                self._ends.setdefault(transfer.pending, []).append(line)
            elif transfer.kind is TransferKind.PENDING:
                self._check_ends(line, self._ends.pop(number, []))

    def _check_ends(self, pending: LedgerLine, ends: list[LedgerLine]) -> None:
        transfer = pending.transfer
        if not ends:
            self._open[transfer.debit] = add(self._open[transfer.debit], transfer.amount)
        if len(ends) > 1:
            detail = f"transfer {pending.number} ended {len(ends)} times"
            self._violations.append(Violation("a pending transfer ends once", detail))
        for number, end, _ in ends:
            problem = ending_problem(transfer, end)
            if problem:
                detail = f"transfer {number} ends {pending.number}: {problem}"
                self._violations.append(Violation("at most what was pending is posted", detail))

    def violations(
        self, balances: Mapping[Account, Balance], sums: Mapping[Account, Decimal]
    ) -> tuple[Violation, ...]:
        """The broken rules, after all transfers were added.

        balances: of every wallet. sums: of every account of the gateway in mode P.
        """
        amounts = {**{account: each.amount for account, each in balances.items()}, **sums}
        pending = {account: each.pending for account, each in balances.items()}
        return (
            *self._violations,
            *self._missing_pending_transfers(),
            *_overdrawn(balances),
            *_wrong_sums("a balance is the sum of its transfers", amounts, self._moved),
            *_wrong_sums("what is pending is the sum of open transfers", pending, self._open),
        )

    def _missing_pending_transfers(self) -> Iterator[Violation]:
        for number, ends in self._ends.items():
            detail = f"transfer {ends[0].number} ends {number}, which does not exist"
            yield Violation("a transfer ends a pending transfer", detail)


def _wrong_sums(
    rule: str, saved: Mapping[Account, Decimal], summed: Mapping[Account, Decimal]
) -> Iterator[Violation]:
    """The accounts whose saved balance differs from the sum of their transfers.

    Accounts of the gateway in mode S have no saved balance.
    """
    for account in sorted(saved.keys() | summed.keys()):
        is_saved = account.kind is WALLET or account.is_live
        amount, total = saved.get(account, ZERO), summed.get(account, ZERO)
        if is_saved and amount != total:
            yield Violation(rule, f"{_name(account)} has {amount} and its transfers sum to {total}")


def _overdrawn(balances: Mapping[Account, Balance]) -> Iterator[Violation]:
    for account, balance in balances.items():
        if balance.available < 0 and not account.may_be_negative:
            yield Violation("no wallet is overdrawn", f"{_name(account)} has {balance.available}")


def _name(account: Account) -> str:
    return f"{account} of mode {account.mode}"


# One unit of work reads this many lines, so that payments do not wait for an audit.
PAGE_SIZE: Final = 5_000

_MAX_AUDITS: Final = 3

log = logging.getLogger("sandbox_sim.ledger")


class Balances(NamedTuple):
    """The wallets, by mode, service and wallet, and the accounts of the gateway in mode P."""

    wallets: Mapping[Account, Balance]
    ours: Mapping[Account, Decimal]


class LedgerPage(NamedTuple):
    """A page of lines, newest first. next: the `after` of the next page; None at the end."""

    lines: Sequence[LedgerLine]
    next: int | None


class AuditResult(NamedTuple):
    """The broken rules of the ledger. lines: how many transfers were added up."""

    violations: Sequence[Violation]
    lines: int


class Ledger:
    """Reads and audits the ledger of all services, and tops up SMS units of mode S.

    live: whether production is on.
    """

    def __init__(self, store: Store, clock: Clock, accounts: Accounts, *, live: bool) -> None:
        self._store = store
        self._clock = clock
        self._accounts = accounts
        self.live = live

    async def topup(self, service_id: int, units: int) -> int:
        """Add SMS units in mode S, also to a new service; returns how many it then has."""
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
        """The balances of a mode and a service; None: of all.

        Those of all services in mode P include the accounts of the gateway.
        """
        ours = self.live and service_id is None and mode is not ServiceMode.SANDBOX

        async def work(unit: Unit) -> Balances:
            wallets = await unit.balances(mode, service_id)
            sums = await unit.live_sums() if ours else {}
            return Balances(
                {account: wallets[account] for account in sorted(wallets, key=_wallet_order)},
                {account: sums[account] for account in sorted(sums)},
            )

        return await self._store.run(work)

    async def audit(self) -> AuditResult:
        """Check every rule of the ledger over all services; log each violation.

        A reset or restore of mode S between two parts looks like a violation, so the audit is then
        made again, `_MAX_AUDITS` times in all.
        """
        for _ in range(_MAX_AUDITS):
            result = await self._audit()
            if not result.violations:
                break
        for violation in result.violations:
            log.error("the ledger breaks a rule: %s: %s", *violation)
        return result

    async def _audit(self) -> AuditResult:
        audit = Audit()
        wallets, sums, lines = await self._store.run(_read_first_page)
        # Transfers never change, and newer ones have larger numbers, so the lines that are read
        # later still belong to these balances.
        while True:
            audit.add(lines)
            if len(lines) < PAGE_SIZE:
                return AuditResult(audit.violations(wallets, sums), audit.lines)
            query = LedgerQuery(after=lines[-1].number, limit=PAGE_SIZE)
            lines = (await self.page(query)).lines


async def _read_first_page(
    unit: Unit,
) -> tuple[Mapping[Account, Balance], Mapping[Account, Decimal], Sequence[LedgerLine]]:
    await unit.read_one_moment()
    balances, sums = await unit.balances(None, None), await unit.live_sums()
    return balances, sums, await unit.ledger_page(LedgerQuery(limit=PAGE_SIZE))


def _wallet_order(account: Account) -> tuple[int, ServiceMode, int, str]:
    wallet = 0 if account.wallet is None else [*Wallet].index(account.wallet)
    return account.service_id, account.mode, wallet, account.asset
