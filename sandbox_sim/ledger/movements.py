"""The transfers that payments and messages make, and the fixed figures of sandbox.9.

Source: D21, D22, D39.

In mode S the money that a service spends is posted when the payment is accepted, and posted back if
it does not succeed. In mode P it is pending until the network has confirmed it or it has failed.
Money that comes in is posted with success. SMS units are posted, and posted back, in both modes.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from sandbox_sim.records.attempts import Attempt
from sandbox_sim.records.ledger import (
    ASSET_OF_WALLET,
    MOVING_KINDS,
    AccountKind,
    BadTransfer,
    LedgerLine,
    Reason,
    Transfer,
    TransferKind,
    make_transfer,
    our_account,
    wallet_of,
)
from sandbox_sim.records.reports import Outcome
from sandbox_sim.records.transactions import Status, TransactionRecord
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet

_FIXED_BALANCES: Final[Mapping[Wallet, Decimal]] = {
    Wallet.PAYOUT: Decimal(10000),
    Wallet.COLLECTION: Decimal(100000),
    Wallet.SMS: Decimal(500),
    Wallet.AIRTIME: Decimal(1000),
}

_FIXED_BALANCES_OF_NINE: Final[Mapping[Wallet, Decimal]] = {
    Wallet.PAYOUT: Decimal("5.0"),
    Wallet.COLLECTION: Decimal("10.0"),
    Wallet.SMS: Decimal(0),
    Wallet.AIRTIME: Decimal("1.0"),
}


def ends_in_nine(service_id: int) -> bool:
    """Whether the id is one of the special service ids of sandbox.9."""
    return service_id % 10 == 9


def fixed_balance(service_id: int, wallet: Wallet) -> Decimal:
    """The balance that the interface defines for a wallet (sandbox.9; `airtime` from D21)."""
    balances = _FIXED_BALANCES_OF_NINE if ends_in_nine(service_id) else _FIXED_BALANCES
    return balances[wallet]


def balance_number(amount: Decimal) -> int | float:
    """A balance as a JSON number: an integer, unless it has decimals (10.0 stays 10.0)."""
    return float(amount) if "." in format(amount, "f") else int(amount)


# Constants, because Python 3.11 takes half a microsecond to find a member of an enum.
_SANDBOX: Final = ServiceMode.SANDBOX

_LIVE: Final = ServiceMode.PRODUCTION

_SUCCESS_REASONS: Final = frozenset({Reason.COLLECTED, Reason.DEPOSITED, Reason.SPENT})

_RECEIVED: Final = {Wallet.COLLECTION: Reason.COLLECTED, Wallet.PAYOUT: Reason.DEPOSITED}


def opening(service_id: int, wallet: Wallet, sms_initial_units: int, at: datetime) -> Transfer:
    """The transfer that opens a wallet of mode S with its fixed balance.

    sms_initial_units: the opening units of SMS, if the service id does not end in 9.
    """
    if wallet is Wallet.SMS and not ends_in_nine(service_id):
        amount = Decimal(sms_initial_units)
    else:
        amount = fixed_balance(service_id, wallet)
    account = wallet_of(_SANDBOX, service_id, wallet)
    return make_transfer(Reason.OPENING, account, amount, "", at)


def of_transaction(transaction: TransactionRecord) -> Transfer | None:
    """The transfer for the current status of a transaction of mode S, or None (D21)."""
    status, payment = transaction.status, transaction.payment
    spent, received = transaction.spends, payment.operation.row.fills
    if spent and status is Status.PENDING:
        wallet, reason = spent, Reason.SPENT
    elif spent and status in {Status.FAILED, Status.CANCELLED}:
        wallet, reason = spent, Reason.RETURNED
    elif received and status is Status.SUCCESSFUL:
        wallet, reason = received, _RECEIVED[received]
    else:
        return None
    account = wallet_of(_SANDBOX, transaction.service_id, wallet)
    at = transaction.decided_at or transaction.initiated_at
    return make_transfer(reason, account, payment.amount, transaction.network_transaction_id, at)


def sms_units(
    reason: Reason, mode: ServiceMode, service_id: int, count: int, subject: str, at: datetime
) -> Transfer:
    """The transfer of SMS units that are charged for a send, given back or added.

    subject: the processing_id or the batch_id of a send.
    """
    account = wallet_of(mode, service_id, Wallet.SMS)
    return make_transfer(reason, account, Decimal(count), subject, at)


def topup(service_id: int, wallet: Wallet, count: int, at: datetime) -> Transfer:
    """The transfer of SMS units or airtime that an operator gives to a service in mode P.

    Raises:
        BadTransfer: the wallet holds money. Payout funds come by a deposit (DTTW).
    """
    account = wallet_of(_LIVE, service_id, wallet)
    if wallet not in ASSET_OF_WALLET:
        raise BadTransfer(f"{account} holds money: use a deposit instead of a top-up")
    return make_transfer(Reason.TOPUP, account, Decimal(count), "", at)


def spending(attempt: Attempt) -> Transfer | None:
    """The pending transfer of an accepted payment; None if the service spends nothing."""
    wallet = attempt.spends
    if wallet is None:
        return None
    return _live_transfer(Reason.SPENT, attempt, wallet, attempt.created_at, TransferKind.PENDING)


def received(attempt: Attempt, at: datetime) -> Transfer | None:
    """The transfer of money that came in with a success; None if the operation brings no money."""
    wallet = attempt.operation.row.fills
    if wallet is None:
        return None
    return _live_transfer(_RECEIVED[wallet], attempt, wallet, at)


def affected_wallet(attempt: Attempt) -> Wallet:
    """The wallet of the service that an attempt takes from or adds to."""
    return attempt.spends or attempt.operation.row.fills or Wallet.SMS


def suspended(attempt: Attempt, at: datetime) -> Transfer | None:
    """The transfer for a contradiction: between clearing and suspense; wallets do not change.

    Clearing then agrees with the network, and suspense holds the difference until a person decides.
    None if the network only says that the payment is pending: no money has moved yet.
    """
    if attempt.contradicted_by in {None, Outcome.PENDING}:
        return None
    transfer = _live_transfer(Reason.SUSPENDED, attempt, affected_wallet(attempt), at)
    # Money that comes in lowers clearing; money that goes out raises it. FAILED and REVERSED undo
    # either.
    raises_clearing = (attempt.operation.row.fills is not None) is (
        attempt.contradicted_by is not Outcome.SUCCEEDED
    )
    if raises_clearing:
        return transfer
    return transfer._replace(debit=transfer.credit, credit=transfer.debit)


def reversals(lines: Iterable[LedgerLine], at: datetime) -> Sequence[Transfer]:
    """The transfers that reverse what a success moved into or out of a wallet (D45).

    lines: the ledger lines of the payment; a person may have posted a part of its amount.
    """
    return [
        Transfer(each.credit, each.debit, each.amount, Reason.REVERSED, each.subject, at)
        for each in (line.transfer for line in lines)
        if each.reason in _SUCCESS_REASONS and each.kind in MOVING_KINDS
    ]


def from_suspense(reversal: Transfer) -> Transfer:
    """The transfer for a reversal that its wallet cannot pay: suspense pays it instead."""
    debit = our_account(AccountKind.SUSPENSE, reversal.mode, reversal.debit.asset)
    return reversal._replace(debit=debit, reason=Reason.SUSPENDED)


def _live_transfer(
    reason: Reason,
    attempt: Attempt,
    wallet: Wallet,
    at: datetime,
    kind: TransferKind = TransferKind.POSTED,
) -> Transfer:
    account = wallet_of(_LIVE, attempt.service_id, wallet, attempt.currency)
    amount, subject = attempt.moved_amount, attempt.network_transaction_id
    return make_transfer(reason, account, amount, subject, at, network=attempt.network, kind=kind)
