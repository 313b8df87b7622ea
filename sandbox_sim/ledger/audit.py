"""What must hold of the ledger at any moment, and what breaks it, in words. Source: D39."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

from sandbox_sim.records.ledger import (
    BY_HAND,
    MOVES,
    WALLET,
    ZERO,
    Account,
    Balance,
    LedgerLine,
    TransferKind,
    add,
    subtract,
    why_it_cannot_end,
)


class Violation(NamedTuple):
    """A rule of the ledger that does not hold, and what breaks it, in words."""

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
        self._found: list[Violation] = []

    def add(self, lines: Iterable[LedgerLine]) -> None:
        """Count these transfers, each older than the one before."""
        for line in lines:
            self.lines += 1
            found = line.transfer
            if found.reason in BY_HAND and not (line.manual and line.manual.by and line.manual.why):
                detail = f"transfer {line.number} has no name or no reason"
                self._found.append(Violation("a person signs what a person enters", detail))
            if found.kind in MOVES:
                self._moved[found.debit] = subtract(self._moved[found.debit], found.amount)
                self._moved[found.credit] = add(self._moved[found.credit], found.amount)
            if found.pending is not None:
                self._ends.setdefault(found.pending, []).append(line)
            elif found.kind is TransferKind.PENDING:
                self._end(line, self._ends.pop(line.number, []))

    def _end(self, pending: LedgerLine, ends: list[LedgerLine]) -> None:
        begun = pending.transfer
        if not ends:
            self._open[begun.debit] = add(self._open[begun.debit], begun.amount)
        if len(ends) > 1:
            detail = f"transfer {pending.number} ended {len(ends)} times"
            self._found.append(Violation("a pending transfer ends once", detail))
        for number, end, _ in ends:
            problem = why_it_cannot_end(begun, end)
            if problem:
                detail = f"transfer {number} ends {pending.number}: {problem}"
                self._found.append(Violation("at most what was pending is posted", detail))

    def violations(
        self, balances: Mapping[Account, Balance], sums: Mapping[Account, Decimal]
    ) -> tuple[Violation, ...]:
        """Everything that does not hold, after all transfers were counted.

        balances: of every wallet. sums: of every account of ours in mode P.
        """
        has = {**{account: each.amount for account, each in balances.items()}, **sums}
        pending = {account: each.pending for account, each in balances.items()}
        return (
            *self._found,
            *self._without_beginning(),
            *_overdrawn(balances),
            *_differing("a balance is the sum of its transfers", has, self._moved),
            *_differing("what is pending is the sum of open transfers", pending, self._open),
        )

    def _without_beginning(self) -> Iterator[Violation]:
        for number, ends in self._ends.items():
            detail = f"transfer {ends[0].number} ends {number}, which is not there"
            yield Violation("what ends was pending", detail)


def _differing(
    rule: str, kept: Mapping[Account, Decimal], summed: Mapping[Account, Decimal]
) -> Iterator[Violation]:
    """The accounts where what is kept is not what was summed up.

    Of the accounts of ours in mode S nothing is kept.
    """
    for account in sorted(kept.keys() | summed.keys()):
        is_kept = account.kind is WALLET or account.is_live
        amount, total = kept.get(account, ZERO), summed.get(account, ZERO)
        if is_kept and amount != total:
            yield Violation(rule, f"{_name(account)} has {amount} and its transfers sum to {total}")


def _overdrawn(balances: Mapping[Account, Balance]) -> Iterator[Violation]:
    for account, balance in balances.items():
        if balance.available < 0 and not account.may_be_negative:
            yield Violation("no service owes us", f"{_name(account)} has {balance.available}")


def _name(account: Account) -> str:
    return f"{account} of mode {account.mode}"
