"""What holds for the ledger at any moment, each rule a function that names what breaks it.

`ledger` checks these live; the tests fuzz them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

from sandbox_sim.domain.double_entry.accounts import Account, AccountKind
from sandbox_sim.domain.double_entry.entries import ZERO, BookLine, Leg, add
from sandbox_sim.domain.double_entry.holds import Hold, HoldState


class Violation(NamedTuple):
    """A rule of the ledger that does not hold, and what breaks it, in words."""

    rule: str
    detail: str


def unbalanced_assets(balances: Mapping[Account, Decimal]) -> Iterator[Violation]:
    """Every asset sums to zero over all accounts."""
    sums: dict[str, Decimal] = defaultdict(lambda: ZERO)
    for account, balance in balances.items():
        sums[account.asset] = add(sums[account.asset], balance)
    for asset, total in sorted(sums.items()):
        if total:
            yield Violation("every asset sums to zero", f"{asset} sums to {total}")


def overdrawn(balances: Mapping[Account, Decimal]) -> Iterator[Violation]:
    """No account that may not be below zero is."""
    for account, balance in balances.items():
        if balance < 0 and not account.may_be_negative:
            yield Violation("no service owes us", f"{account} has {balance}")


def holds_that_differ(
    holds: Iterable[Hold], balances: Mapping[Account, Decimal]
) -> Iterator[Violation]:
    """What is held of a wallet is the sum of its open holds."""
    sums: dict[Account, Decimal] = defaultdict(lambda: ZERO)
    for hold in holds:
        if hold.state is HoldState.OPEN:
            sums[hold.held] = add(sums[hold.held], hold.amount)
    held = {account for account in balances if account.kind is AccountKind.HELD}
    for account in sorted(held | set(sums)):
        balance = balances.get(account, ZERO)
        if balance != sums[account]:
            detail = f"{account} has {balance} and its open holds {sums[account]}"
            yield Violation("held is the sum of open holds", detail)


def balances_that_differ(
    legs: Iterable[Leg], balances: Mapping[Account, Decimal]
) -> Iterator[Violation]:
    """A balance is the sum of what was posted to its account."""
    sums: dict[Account, Decimal] = defaultdict(lambda: ZERO)
    for account, amount in legs:
        sums[account] = add(sums[account], amount)
    for account in sorted(set(sums) | set(balances)):
        balance = balances.get(account, ZERO)
        if balance != sums[account]:
            detail = f"{account} has {balance} and its postings sum to {sums[account]}"
            yield Violation("a balance is the sum of its postings", detail)


class BookAudit:
    """Adds up the lines of the books as they are read, in any number of parts.

    Of an entry only the assets are kept that do not sum to zero, so its memory does not grow with
    the books.
    """

    def __init__(self) -> None:
        self.lines = 0
        self._accounts: dict[Account, Decimal] = {}
        self._entries: dict[tuple[int, str], Decimal] = {}

    def add(self, lines: Iterable[BookLine]) -> None:
        """Count these lines."""
        for line in lines:
            self.lines += 1
            account, asset = line.account, (line.entry, line.account.asset)
            self._accounts[account] = add(self._accounts.get(account, ZERO), line.amount)
            total = add(self._entries.get(asset, ZERO), line.amount)
            if total:
                self._entries[asset] = total
            else:
                self._entries.pop(asset, None)

    def unbalanced_entries(self) -> Iterator[Violation]:
        """Every asset of an entry sums to zero. Only after all lines of the books were counted."""
        for (entry, asset), total in sorted(self._entries.items()):
            yield Violation("every entry is balanced", f"entry {entry} sums to {total} {asset}")

    def violations(
        self, balances: Mapping[Account, Decimal], holds: Iterable[Hold]
    ) -> tuple[Violation, ...]:
        """Everything that does not hold for these balances and holds and for all lines."""
        legs = [Leg(account, amount) for account, amount in self._accounts.items()]
        return (*self.unbalanced_entries(), *violations(balances, holds, legs))


def violations(
    balances: Mapping[Account, Decimal], holds: Iterable[Hold], legs: Iterable[Leg]
) -> tuple[Violation, ...]:
    """Everything that does not hold; empty where the ledger is sound."""
    return (
        *unbalanced_assets(balances),
        *overdrawn(balances),
        *holds_that_differ(holds, balances),
        *balances_that_differ(legs, balances),
    )
