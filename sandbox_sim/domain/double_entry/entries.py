"""Entries: movements that are balanced by construction.

An entry is made of transfers. Each transfer takes an amount from one account and gives the same
amount to another account of the same asset, so every asset of an entry sums to zero.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Context, Decimal
from enum import StrEnum
from typing import Final, NamedTuple

from sandbox_sim.domain.double_entry.accounts import Account
from sandbox_sim.domain.ledger import Account as Wallet

# Adds any two amounts to the last digit; money has fewer digits than this.
_EXACT: Final = Context(prec=1000)
ZERO: Final = Decimal(0)


class Reason(StrEnum):
    """Why an entry was made."""

    HOLD = "hold"
    COMMIT = "commit"
    VOID = "void"
    COLLECTED = "collected"
    DEPOSITED = "deposited"
    TOPUP = "topup"
    CHARGE = "charge"
    REFUND = "refund"
    SUSPENDED = "suspended"
    RESOLVED = "resolved"


class BadTransfer(ValueError):
    """A transfer that would not be one; the text says why."""


class Overdrawn(Exception):
    """An entry would take more from an account than there is."""

    def __init__(self, account: Account, balance: Decimal, wanted: Decimal) -> None:
        super().__init__(f"{account} has {balance}, and {wanted} are wanted")
        self.account = account
        self.balance = balance
        self.wanted = wanted


class Transfer(NamedTuple):
    """An amount above zero from one account to another."""

    source: Account
    target: Account
    amount: Decimal


class Leg(NamedTuple):
    """What an entry does to one account; the amount has a sign."""

    account: Account
    amount: Decimal


class BookLine(NamedTuple):
    """One leg of an entry, as it was posted.

    number: in the order of posting. entry: the number of its entry.
    """

    number: int
    entry: int
    account: Account
    amount: Decimal
    reason: Reason
    subject: str
    at: datetime


class BookQuery(NamedTuple):
    """Which lines of the books, newest first; what is None fits every one.

    after: the number of the last line of the page before.
    """

    service_id: int | None = None
    wallet: Wallet | None = None
    reason: Reason | None = None
    subject: str | None = None
    after: int | None = None
    limit: int = 20

    def matches(self, line: BookLine) -> bool:
        """Whether a line passes the filters."""
        return (
            self.service_id in {None, line.account.service_id}
            and self.wallet in {None, line.account.wallet}
            and self.reason in {None, line.reason}
            and self.subject in {None, line.subject}
            and (self.after is None or line.number < self.after)
        )


class Entry:
    """Transfers that happen together.

    subject: the id of what caused it, such as a transaction, a hold or a message.
    """

    __slots__ = ("at", "reason", "subject", "transfers")

    def __init__(
        self, reason: Reason, subject: str, at: datetime, transfers: Iterable[Transfer]
    ) -> None:
        """Make an entry.

        Raises:
            BadTransfer: there is no transfer, or one of them is not between two accounts of one
            asset, or its amount is not a finite number above zero.
        """
        self.reason = reason
        self.subject = subject
        self.at = at
        self.transfers = tuple(transfers)
        if not self.transfers:
            raise BadTransfer("an entry has at least one transfer")
        for transfer in self.transfers:
            _check(transfer)

    @property
    def legs(self) -> tuple[Leg, ...]:
        """What it does to each account, once for each; accounts that end where they were too."""
        amounts: dict[Account, Decimal] = {}
        for source, target, amount in self.transfers:
            amounts[source] = _EXACT.subtract(amounts.get(source, ZERO), amount)
            amounts[target] = _EXACT.add(amounts.get(target, ZERO), amount)
        return tuple(Leg(account, amount) for account, amount in amounts.items())

    def __repr__(self) -> str:
        moved = ", ".join(f"{t.amount} {t.source} -> {t.target}" for t in self.transfers)
        return f"<Entry {self.reason} of {self.subject}: {moved}>"


def _check(transfer: Transfer) -> None:
    source, target, amount = transfer
    if not amount.is_finite() or amount <= 0:
        raise BadTransfer(f"the amount of a transfer is above zero, and {amount} is not")
    if source.asset != target.asset:
        raise BadTransfer(f"{source} and {target} hold different assets")
    if source == target:
        raise BadTransfer(f"{source} cannot be transferred to itself")


def add(first: Decimal, second: Decimal) -> Decimal:
    """The sum, to the last digit."""
    return _EXACT.add(first, second)


def post(balances: Mapping[Account, Decimal], entry: Entry) -> dict[Account, Decimal]:
    """The new balances of the accounts that the entry touches.

    balances: of at least these accounts; one that is missing has zero.

    Raises:
        Overdrawn: an account that is never below zero would be.
    """
    found = {}
    for account, amount in entry.legs:
        balance = balances.get(account, ZERO)
        after = add(balance, amount)
        if after < 0 and amount < 0 and not account.may_be_negative:
            raise Overdrawn(account, balance, -amount)
        found[account] = after
    return found
