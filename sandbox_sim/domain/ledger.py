"""Accounts of a service: each movement is a posting, and the balance is the sum of the postings.

Source: sandbox.9, sandbox.10, D21, D22. Money is in GHS, SMS in units; both are `Decimal` here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Context, Decimal
from enum import StrEnum
from functools import reduce
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple, TypedDict

from sandbox_sim.domain.json_text import plain_decimal
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.timestamps import Timestamp, iso
from sandbox_sim.domain.vocabulary import Operation


class Account(StrEnum):
    """The four accounts, in the order of the balance record."""

    PAYOUT = "payout"
    COLLECTION = "collection"
    SMS = "sms"
    AIRTIME = "airtime"


REASONS: Final = (
    *("opening", "charge", "refund", "topup"),
    *("collected", "deposited", "spent", "returned"),
)
# Adds any two amounts without rounding. Amounts are JSON numbers, and the largest and the smallest
# of those are 650 digits apart; Decimal keeps 28 digits by default.
_EXACT: Final = Context(prec=1000)


class Posting(NamedTuple):
    """One movement on one account.

    reason: one of `REASONS`.
    subject: the id of the transaction, send or batch that caused it; empty where there is none.
    """

    service_id: int
    account: Account
    amount: Decimal
    reason: str
    subject: str
    at: datetime


class PostingView(TypedDict):
    """A posting as the control API shows it."""

    service_id: int
    account: Annotated[str, Account]
    amount: Annotated[str, "a decimal, in GHS or SMS units"]
    reason: Annotated[str, REASONS]
    subject: Annotated[str, "the id of the transaction, send or batch, or empty"]
    at: Timestamp


def shown(posting: Posting) -> PostingView:
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
    """The sum of an account's postings, and the time of the last one."""

    amount: Decimal
    updated_at: datetime

    def after(self, posting: Posting) -> "Balance":
        """The balance after one more posting."""
        return Balance(_EXACT.add(self.amount, posting.amount), posting.at)


def exact_sum(amounts: Iterable[Decimal]) -> Decimal:
    """The sum of the amounts, without rounding."""
    return reduce(_EXACT.add, amounts, Decimal(0))


class LedgerLine(NamedTuple):
    """A posting with the number that the store assigned."""

    number: int
    posting: Posting


@dataclass(frozen=True, slots=True)
class LedgerQuery:
    """Which lines of the ledger, newest first; every filter that is set must match exactly.

    after: the number of the last line of the page before.
    """

    service_id: int | None = None
    account: Account | None = None
    reason: str | None = None
    subject: str | None = None
    after: int | None = None
    limit: int = 20

    def matches(self, line: LedgerLine) -> bool:
        """Whether the line passes the filters."""
        number, posting = line
        return (
            (self.subject is None or self.subject == posting.subject)
            and (self.reason is None or self.reason == posting.reason)
            and (self.account is None or self.account is posting.account)
            and (self.service_id is None or self.service_id == posting.service_id)
            and (self.after is None or number < self.after)
        )


class Audit(NamedTuple):
    """An account's balance, and the sum of its postings computed again."""

    service_id: int
    account: Account
    balance: Decimal
    sum_of_postings: Decimal

    @property
    def agrees(self) -> bool:
        """Whether the two are equal, as they must be."""
        return self.balance == self.sum_of_postings


_FIXED_BALANCES: Final[Mapping[Account, Decimal]] = MappingProxyType(
    {
        Account.PAYOUT: Decimal(10000),
        Account.COLLECTION: Decimal(100000),
        Account.SMS: Decimal(500),
        Account.AIRTIME: Decimal(1000),
    }
)
_FIXED_BALANCES_OF_NINE: Final[Mapping[Account, Decimal]] = MappingProxyType(
    {
        Account.PAYOUT: Decimal("5.0"),
        Account.COLLECTION: Decimal("10.0"),
        Account.SMS: Decimal(0),
        Account.AIRTIME: Decimal("1.0"),
    }
)


def ends_in_nine(service_id: int) -> bool:
    """Whether the id is one of the special service ids of sandbox.9."""
    return service_id % 10 == 9


def fixed_balance(service_id: int, account: Account) -> Decimal:
    """The balance that the interface defines for an account (sandbox.9; `airtime` from D21)."""
    balances = _FIXED_BALANCES_OF_NINE if ends_in_nine(service_id) else _FIXED_BALANCES
    return balances[account]


def balance_number(amount: Decimal) -> int | float:
    """A balance as a JSON number: an integer, unless it has decimals (10.0 stays 10.0)."""
    return float(amount) if "." in format(amount, "f") else int(amount)


def opening_posting(
    service_id: int, account: Account, sms_initial_units: int, at: datetime
) -> Posting:
    """The posting that opens an account with its fixed balance.

    sms_initial_units: the opening units of SMS, where the service id does not end in 9.
    """
    if account is Account.SMS and not ends_in_nine(service_id):
        amount = Decimal(sms_initial_units)
    else:
        amount = fixed_balance(service_id, account)
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
    """The account that an accepted operation takes money from, or None."""
    return _SPENT_FROM.get(operation)


def posting_for(transaction: Transaction) -> Posting | None:
    """The posting that the current status of a transaction causes, or None (live balances, D21).

    Money that leaves is taken at acceptance, and returned if the transaction does not succeed.
    Money that arrives is added on success.
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
