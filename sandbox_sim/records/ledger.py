"""The ledger: accounts and their names, and transfers, which are only ever added.

Source: D21, D22, D32, D39.

Every account holds one asset: a currency, SMS units or airtime. A wallet is what we owe a service;
every other account is ours. A balance is what was credited less what was debited: a collection
makes clearing lower, which is what we owe a network less what it owes us; a payout makes it higher.

A transfer is posted at once, or it is pending: then its amount is set aside of the wallet until one
later transfer names it, which posts it, whole or in part, or voids it. One that a person makes is
signed with a `ManualEntry` (D44).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Context, Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Final, NamedTuple, NotRequired, TypedDict

from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.json_text import plain_decimal, viewer
from sandbox_sim.values.timestamps import Timestamp, iso
from sandbox_sim.values.vocabulary import DEFAULT_CURRENCY, Wallet


class ManualEntry(NamedTuple):
    """Who made a transfer by hand, and why. It is added with the transfer and never changed.

    by, why: never blank. reference: the person's own reference, such as a ticket number; may be
    empty.
    reverses: the number of the manual entry that it reverses.
    closes: of the entry that closes a period: the number of the last transfer in the period.
    ends_at: of that entry: when the period ended.
    """

    by: str
    why: str
    reference: str = ""
    reverses: int | None = None
    closes: int | None = None
    ends_at: datetime | None = None


class ManualEntryView(TypedDict):
    """Who made an entry by hand, and why."""

    by: Annotated[str, "who made it"]
    reason: Annotated[str, "why"]
    reference: Annotated[str, "the person's own reference, such as a ticket number; may be empty"]
    reverses: Annotated[int | None, "the id of the manual entry that it reverses; else null"]
    ends_at: Annotated[
        str | None, "of the entry that closes a period: when the period ended; else null"
    ]


shown_entry = viewer(ManualEntryView)


SMS_UNITS: Final = "SMS"

AIRTIME: Final = "AIRTIME"

# The wallets that hold an asset of their own; the others hold the currency of the operation.
ASSET_OF_WALLET: Final = {Wallet.SMS: SMS_UNITS, Wallet.AIRTIME: AIRTIME}

OUR_ASSETS: Final = frozenset(ASSET_OF_WALLET.values())


class AccountKind(StrEnum):
    """What an account is for."""

    WALLET = "wallet"  # of a service
    CLEARING = "clearing"  # of a network
    FEES = "fees"  # what we earned
    ISSUED = "issued"  # where opening balances, SMS units and airtime come from; used units return
    SUSPENSE = "suspense"  # what a contradiction leaves until a person decides


# Constants, because Python 3.11 takes long to find a member of an enum.
WALLET: Final = AccountKind.WALLET

_CLEARING: Final = AccountKind.CLEARING

_SANDBOX: Final = ServiceMode.SANDBOX


class Account(NamedTuple):
    """An account of one mode.

    service_id, wallet: of a wallet, else 0 and None. network: of clearing, else empty.
    """

    mode: ServiceMode
    kind: AccountKind
    asset: str
    service_id: int = 0
    wallet: Wallet | None = None
    network: str = ""

    @property
    def is_live(self) -> bool:
        """Whether it is of mode P."""
        return self.mode is not _SANDBOX

    @property
    def may_be_negative(self) -> bool:
        """Whether it may have less than nothing: not a wallet of mode P."""
        return self.kind is not WALLET or not self.is_live

    def __str__(self) -> str:
        """The name as the ledger shows and stores it, such as `service/55/payout/GHS`."""
        if self.wallet is not None:
            return f"service/{self.service_id}/{self.wallet._value_}/{self.asset}"
        if self.kind is _CLEARING:
            return f"network/{self.network}/clearing/{self.asset}"
        return f"{self.kind._value_}/{self.asset}"


@lru_cache(maxsize=4096)
def parse_account(mode: ServiceMode, name: str) -> Account:
    """The account with this name."""
    first, _, rest = name.partition("/")
    if first == "service":
        service_id, wallet, asset = rest.split("/", 2)
        return Account(mode, WALLET, asset, int(service_id), Wallet(wallet))
    if first == "network":  # its name is a part of addresses, so it has no slash
        network, _, asset = rest.split("/", 2)
        return Account(mode, _CLEARING, asset, network=network)
    return Account(mode, AccountKind(first), rest)


@lru_cache(maxsize=4096)
def wallet_of(
    mode: ServiceMode, service_id: int, wallet: Wallet, currency: str = DEFAULT_CURRENCY
) -> Account:
    """A wallet of a service. currency: what it holds, unless it holds an asset of ours."""
    asset = ASSET_OF_WALLET.get(wallet, currency)
    return Account(mode, WALLET, asset, service_id, wallet)


def our_account(kind: AccountKind, mode: ServiceMode, asset: str, network: str = "") -> Account:
    """An account of ours. network: of clearing.

    For SMS units and airtime, issued takes the place of clearing: what we pay a network for them is
    not posted.
    """
    if kind is not _CLEARING:
        return Account(mode, kind, asset)
    if asset in OUR_ASSETS:
        return Account(mode, AccountKind.ISSUED, asset)
    return Account(mode, kind, asset, network=network)


# Adds any two amounts without rounding. Amounts are JSON numbers, and the largest and the smallest
# of those are 650 digits apart; Decimal keeps 28 digits by default.
_EXACT: Final = Context(prec=1000)

ZERO: Final = Decimal(0)

add: Final = _EXACT.add

subtract: Final = _EXACT.subtract

multiply: Final = _EXACT.multiply

# What clearing of mode S names as its network.
SANDBOX_NETWORK: Final = "sandbox"


class TransferKind(StrEnum):
    """What a transfer does with its amount.

    posted: moves it at once.
    pending: sets it aside, in mode P.
    post: moves what a pending one set aside, or a part, and frees the rest.
    void: frees what a pending one set aside.
    """

    POSTED = "posted"
    PENDING = "pending"
    POST = "post"
    VOID = "void"


# Constants, because Python 3.11 takes half a microsecond to find a member of an enum.
_POSTED: Final = TransferKind.POSTED

_PENDING: Final = TransferKind.PENDING

_POST: Final = TransferKind.POST

_VOID: Final = TransferKind.VOID

# The kinds that move money from one account to the other.
MOVING_KINDS: Final = frozenset({_POSTED, _POST})


class Reason(StrEnum):
    """Why a transfer was made."""

    OPENING = "opening"
    CHARGE = "charge"
    REFUND = "refund"
    TOPUP = "topup"
    COLLECTED = "collected"
    DEPOSITED = "deposited"
    SPENT = "spent"
    RETURNED = "returned"
    REVERSED = "reversed"
    SUSPENDED = "suspended"
    RESOLVED = "resolved"
    ADJUSTED = "adjusted"
    UNDONE = "undone"
    CLOSED = "closed"


# Only a person enters these, each time with a name and a reason. So is a top-up in mode P.
MANUAL_REASONS: Final = frozenset({Reason.RESOLVED, Reason.ADJUSTED, Reason.UNDONE, Reason.CLOSED})


class Movement(NamedTuple):
    """The account that a reason debits, the one that it credits, and what it means in words."""

    debit: AccountKind
    credit: AccountKind
    words: str


_ISSUED: Final = AccountKind.ISSUED

_SUSPENSE: Final = AccountKind.SUSPENSE

# Clearing is replaced by issued where the asset is ours.
MOVEMENTS: Final[Mapping[Reason, Movement]] = {
    Reason.OPENING: Movement(_ISSUED, WALLET, "what the wallet begins with"),
    Reason.CHARGE: Movement(WALLET, _ISSUED, "the units of a send"),
    Reason.REFUND: Movement(_ISSUED, WALLET, "the units of a message that was not sent"),
    Reason.TOPUP: Movement(_ISSUED, WALLET, "added by a person"),
    Reason.COLLECTED: Movement(_CLEARING, WALLET, "collected from a payer"),
    Reason.DEPOSITED: Movement(_CLEARING, WALLET, "deposited by a payer"),
    Reason.SPENT: Movement(WALLET, _CLEARING, "spent on a payment"),
    Reason.RETURNED: Movement(_CLEARING, WALLET, "returned, as the payment did not succeed"),
    # The other way round for what was spent.
    Reason.REVERSED: Movement(WALLET, _CLEARING, "the network took it back after its success"),
    # Either way round; a person decides about it.
    Reason.SUSPENDED: Movement(_SUSPENSE, _CLEARING, "the network said otherwise"),
    # A person chooses the accounts of these, either way round.
    Reason.RESOLVED: Movement(_SUSPENSE, WALLET, "moved out of suspense by a person"),
    Reason.ADJUSTED: Movement(_CLEARING, WALLET, "corrected by a person"),
    Reason.UNDONE: Movement(WALLET, _CLEARING, "an entry of a person, reversed by a person"),
    Reason.CLOSED: Movement(WALLET, _CLEARING, "paid out to the merchant for a closed period"),
}


class BadTransfer(ValueError):
    """An invalid transfer; the text says why."""


class Overdrawn(Exception):
    """A transfer would take more from a wallet than is available."""

    def __init__(self, account: Account, available: Decimal, wanted: Decimal) -> None:
        super().__init__(f"{account} has {available}, less than {wanted}")


class PendingEnded(Exception):
    """There is no such pending transfer, or one has posted or voided it before."""


class Transfer(NamedTuple):
    """An amount from `debit` to `credit`; one of them at most is a wallet.

    subject: the id of the transaction, send or batch that caused it; empty if there is none.
    pending: of one that posts or voids: the number of the pending transfer; else None.
    """

    debit: Account
    credit: Account
    amount: Decimal
    reason: Reason
    subject: str
    at: datetime
    kind: TransferKind = _POSTED
    pending: int | None = None

    @property
    def account(self) -> Account | None:
        """The wallet that it concerns; None where both accounts are ours."""
        if self.debit.kind is WALLET:
            return self.debit
        return self.credit if self.credit.kind is WALLET else None

    @property
    def service_id(self) -> int | None:
        """The service whose wallet it concerns."""
        account = self.account
        return None if account is None else account.service_id

    @property
    def mode(self) -> ServiceMode:
        """The mode of its accounts."""
        return self.debit.mode


@lru_cache(maxsize=4096)
def _accounts(reason: Reason, wallet: Account, network: str) -> tuple[Account, Account]:
    def account(kind: AccountKind) -> Account:
        if kind is WALLET:
            return wallet
        return our_account(kind, wallet.mode, wallet.asset, network)

    movement = MOVEMENTS[reason]
    return account(movement.debit), account(movement.credit)


def make_transfer(
    reason: Reason,
    wallet: Account,
    amount: Decimal,
    subject: str,
    at: datetime,
    *,
    network: str = SANDBOX_NETWORK,
    kind: TransferKind = _POSTED,
) -> Transfer:
    """The transfer that a reason makes for a wallet.

    Raises:
        BadTransfer: the amount is below zero, or not a finite number.
    """
    if not amount.is_finite() or amount < 0:
        raise BadTransfer(f"an amount must be a number of at least 0, not {amount}")
    debit, credit = _accounts(reason, wallet, network)
    return Transfer(debit, credit, amount, reason, subject, at, kind)


class LedgerLine(NamedTuple):
    """A transfer with the number that the store assigned.

    manual: who made it and why, where a person did.
    """

    number: int
    transfer: Transfer
    manual: ManualEntry | None = None

    def posted(self, at: datetime, credit: Account, amount: Decimal | None = None) -> Transfer:
        """The transfer that posts this pending one, or a part, to where the money went."""
        part = self.transfer.amount if amount is None else amount
        return self.transfer._replace(
            credit=credit, amount=part, at=at, kind=_POST, pending=self.number
        )

    def voided(self, at: datetime) -> Transfer:
        """The transfer that voids this pending one."""
        return self.transfer._replace(
            reason=Reason.RETURNED, at=at, kind=_VOID, pending=self.number
        )


def ending_problem(pending: Transfer, ending: Transfer) -> str:
    """Why a transfer cannot post or void a pending one; empty where it can."""
    if pending.kind is not _PENDING or pending.debit != ending.debit:
        return "it is not a pending transfer of this wallet"
    if ending.amount > pending.amount:
        return f"{pending.amount} is pending, less than {ending.amount}"
    if ending.kind is _VOID and ending.amount != pending.amount:
        return f"{pending.amount} is pending, and a void must free all of it"
    return ""


class Balance(NamedTuple):
    """What a wallet has: available to spend, and set aside by pending transfers."""

    available: Decimal
    pending: Decimal
    updated_at: datetime

    @property
    def amount(self) -> Decimal:
        """All that it has."""
        return add(self.available, self.pending)

    def after(
        self, wallet: Account, transfer: Transfer, pending: Transfer | None = None
    ) -> "Balance":
        """The balance of a wallet after a transfer.

        pending: the pending transfer that it posts or voids.

        Raises:
            Overdrawn: a wallet that may not be below zero would be.
            BadTransfer: the pending transfer cannot be posted or voided so.
        """
        amount, kind = transfer.amount, transfer.kind
        if pending is not None:
            return self._after_ending(wallet, transfer, pending)
        if transfer.credit == wallet:
            credited = amount if kind is _POSTED else ZERO
            return Balance(add(self.available, credited), self.pending, transfer.at)
        available = subtract(self.available, amount)
        if available < 0 and not wallet.may_be_negative:
            raise Overdrawn(wallet, self.available, amount)
        set_aside = add(self.pending, amount) if kind is _PENDING else self.pending
        return Balance(available, set_aside, transfer.at)

    def _after_ending(self, wallet: Account, ending: Transfer, pending: Transfer) -> "Balance":
        problem = ending_problem(pending, ending)
        if problem:
            raise BadTransfer(f"{wallet}: {problem}")
        posted = ending.amount if ending.kind is _POST else ZERO
        available = add(self.available, subtract(pending.amount, posted))
        return Balance(available, subtract(self.pending, pending.amount), ending.at)


def empty_balance(at: datetime) -> Balance:
    """The balance of a wallet that nothing has moved yet."""
    return Balance(ZERO, ZERO, at)


NO_ENTRY: Final = ManualEntry("", "")


@dataclass(frozen=True, slots=True)
class LedgerQuery:
    """Which lines of the ledger, newest first; every filter that is set must match exactly.

    after: the number of the last line of the page before.
    reverses: the number of the manual entry that the line reverses.
    suspense: only the lines that move something into suspense or out of it.
    """

    service_id: int | None = None
    account: Wallet | None = None
    reason: str | None = None
    subject: str | None = None
    after: int | None = None
    limit: int = 20
    mode: ServiceMode | None = None
    reverses: int | None = None
    suspense: bool = False

    def matches(self, line: LedgerLine) -> bool:
        """Whether the line passes the filters."""
        number, transfer, manual = line
        wallet = transfer.account
        return (
            (self.subject is None or self.subject == transfer.subject)
            and (self.reason is None or self.reason == transfer.reason)
            and (self.account is None or (wallet is not None and self.account is wallet.wallet))
            and (self.service_id is None or self.service_id == transfer.service_id)
            and (self.mode is None or self.mode is transfer.mode)
            and (self.after is None or number < self.after)
            and (self.reverses is None or (manual or NO_ENTRY).reverses == self.reverses)
            and (not self.suspense or _SUSPENSE in {transfer.debit.kind, transfer.credit.kind})
        )


class PostingView(TypedDict):
    """A transfer as the control API shows it: what it does to one wallet."""

    mode: Annotated[str, ServiceMode]
    kind: Annotated[str, TransferKind]
    service_id: Annotated[int | None, "null where no wallet of a service is concerned"]
    account: Annotated[str | None, "the wallet, or null"]
    amount: Annotated[str, "a decimal, in GHS or SMS units; below zero where the wallet is debited"]
    reason: Annotated[str, Reason, "why the amount moves"]
    subject: Annotated[str, "the id of the transaction, send or batch, or empty"]
    at: Timestamp
    debit: Annotated[str, "the name of the account that it comes from"]
    credit: Annotated[str, "the name of the account that it goes to"]
    pending: Annotated[
        int | None, "the id of the pending transfer that a post or void ends; else null"
    ]
    manual: NotRequired[Annotated[ManualEntryView, "of an entry that a person made"]]


class NumberedPosting(PostingView):
    """A posting under the number that the store gave it."""

    id: Annotated[int, "its number"]


def shown_line(line: LedgerLine) -> NumberedPosting:
    """A line of the ledger as the control API shows it."""
    posting: NumberedPosting = {"id": line.number, **shown(line.transfer)}
    if line.manual is not None:
        posting["manual"] = shown_entry(line.manual, reason=line.manual.why)
    return posting


def shown(transfer: Transfer) -> PostingView:
    """A transfer as the control API shows it."""
    account = transfer.account
    amount = transfer.amount
    signed = amount.copy_negate() if account is transfer.debit else amount
    return {
        "mode": transfer.mode.value,
        "kind": transfer.kind.value,
        "service_id": transfer.service_id,
        "account": None if account is None or account.wallet is None else account.wallet.value,
        "amount": plain_decimal(signed),
        "reason": transfer.reason.value,
        "subject": transfer.subject,
        "at": iso(transfer.at),
        "debit": str(transfer.debit),
        "credit": str(transfer.credit),
        "pending": transfer.pending,
    }
