"""Accounts of a service: every movement is a posting and a balance is their sum.

Source: sandbox.9, sandbox.10, D21, D22. Money is in GHS, SMS in units; both are `Decimal` here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Context, Decimal
from enum import StrEnum
from functools import reduce
from types import MappingProxyType
from typing import Final, NamedTuple

from sandbox_sim.domain.callbacks.callbacks import plain_decimal
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.timestamps import iso
from sandbox_sim.domain.vocabulary import Operation


class Account(StrEnum):
    """The four balances of the balance record, in its order."""

    PAYOUT = "payout"
    COLLECTION = "collection"
    SMS = "sms"
    AIRTIME = "airtime"


REASONS: Final = (
    *("opening", "charge", "refund", "topup"),
    *("collected", "deposited", "spent", "returned"),
)
# Adds any two amounts without rounding: they come from JSON numbers, and the largest and the
# smallest of those are 650 digits apart, more than the 28 that Decimal keeps by itself.
_EXACT: Final = Context(prec=1000)


class Posting(NamedTuple):
    """One movement on one account.

    reason: one of `REASONS`.
    subject: the id of the transaction, send or batch that caused it; empty if none did.
    """

    service_id: int
    account: Account
    amount: Decimal
    reason: str
    subject: str
    at: datetime


def shown(posting: Posting) -> dict[str, object]:
    """A posting as the control API shows it."""
    return {
        "service_id": posting.service_id,
        "account": posting.account.value,
        "amount": plain_decimal(posting.amount),
        "reason": posting.reason,
        "subject": posting.subject,
        "at": iso(posting.at),
    }


class Balance(NamedTuple):
    """The sum of an account's postings, and when the last one came."""

    amount: Decimal
    updated_at: datetime

    def after(self, posting: Posting) -> "Balance":
        """The balance that a posting leaves."""
        return Balance(_EXACT.add(self.amount, posting.amount), posting.at)


def total(amounts: Iterable[Decimal]) -> Decimal:
    """Their sum, to the last digit."""
    return reduce(_EXACT.add, amounts, Decimal(0))


class LedgerLine(NamedTuple):
    """A posting as the ledger lists it, under the number that the store gave it."""

    number: int
    posting: Posting


@dataclass(frozen=True, slots=True)
class LedgerQuery:
    """Which lines of the ledger, newest first; a filter that is set must be met exactly.

    after: go on where the line of this number stands; what is older follows it.
    """

    service_id: int | None = None
    account: Account | None = None
    reason: str | None = None
    subject: str | None = None
    after: int | None = None
    limit: int = 20

    def admits(self, line: LedgerLine) -> bool:
        """Whether the line is one of those asked for."""
        number, posting = line
        return (
            (self.subject is None or self.subject == posting.subject)
            and (self.reason is None or self.reason == posting.reason)
            and (self.account is None or self.account is posting.account)
            and (self.service_id is None or self.service_id == posting.service_id)
            and (self.after is None or number < self.after)
        )


class Audit(NamedTuple):
    """An account's balance beside the sum of its postings, which was added up anew."""

    service_id: int
    account: Account
    balance: Decimal
    sum_of_postings: Decimal

    @property
    def agrees(self) -> bool:
        """They are the same, as they must be."""
        return self.balance == self.sum_of_postings


_FIGURES: Final[Mapping[Account, Decimal]] = MappingProxyType(
    {
        Account.PAYOUT: Decimal(10000),
        Account.COLLECTION: Decimal(100000),
        Account.SMS: Decimal(500),
        Account.AIRTIME: Decimal(1000),
    }
)
_FIGURES_OF_NINE: Final[Mapping[Account, Decimal]] = MappingProxyType(
    {
        Account.PAYOUT: Decimal("5.0"),
        Account.COLLECTION: Decimal("10.0"),
        Account.SMS: Decimal(0),
        Account.AIRTIME: Decimal("1.0"),
    }
)


def ends_in_nine(service_id: int) -> bool:
    """The magic service ids of sandbox.9."""
    return service_id % 10 == 9


def figure(service_id: int, account: Account) -> Decimal:
    """The interface's figure for an account (sandbox.9), `airtime` from D21."""
    figures = _FIGURES_OF_NINE if ends_in_nine(service_id) else _FIGURES
    return figures[account]


def figure_in_json(amount: Decimal) -> int | float:
    """A balance as a JSON number: whole figures as integers, 10.0 as 10.0."""
    return float(amount) if "." in format(amount, "f") else int(amount)


def opening(service_id: int, account: Account, sms_initial_units: int, at: datetime) -> Posting:
    """The posting that opens an account; SMS from its own setting, 0 where the id ends in 9."""
    if account is Account.SMS and not ends_in_nine(service_id):
        amount = Decimal(sms_initial_units)
    else:
        amount = figure(service_id, account)
    return Posting(service_id, account, amount, "opening", "", at)


_SPENT_FROM: Final[Mapping[Operation, Account]] = MappingProxyType(
    {
        Operation.PAYOUT: Account.PAYOUT,
        Operation.BILL: Account.PAYOUT,
        Operation.AIRTIME: Account.AIRTIME,
    }
)
_RECEIVED_ON: Final[Mapping[Operation, Account]] = MappingProxyType(
    {
        Operation.COLLECT: Account.COLLECTION,
        Operation.CARD: Account.COLLECTION,
        Operation.DEPOSIT: Account.PAYOUT,
    }
)


def spent_from(operation: Operation) -> Account | None:
    """The account that an operation takes money from when it is accepted."""
    return _SPENT_FROM.get(operation)


def movement(transaction: Transaction) -> Posting | None:
    """What a transaction moves by reaching the status it has, under live balances (D21).

    Money that leaves does so at acceptance and comes back if the transaction does not succeed;
    money that comes in arrives with success.
    """
    status, operation = transaction.status, transaction.payment.operation
    spent, received = _SPENT_FROM.get(operation), _RECEIVED_ON.get(operation)
    amount = transaction.payment.amount
    if spent and status is Status.PENDING:
        account, amount, reason = spent, -amount, "spent"
    elif spent and status in {Status.FAILED, Status.CANCELLED}:
        account, reason = spent, "returned"
    elif received and status is Status.SUCCESSFUL:
        account = received
        reason = "deposited" if operation is Operation.DEPOSIT else "collected"
    else:
        return None
    at = transaction.decided_at or transaction.initiated_at
    subject = transaction.network_transaction_id
    return Posting(transaction.service_id, account, amount, reason, subject, at)
