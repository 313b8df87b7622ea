"""The entries that payments and messages make in production mode. Source: D22, D39.

What a service spends is held when the payment is accepted, committed when the network confirmed it,
and voided when it failed. What comes in is posted when the network confirmed it.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from sandbox_sim.domain import ledger
from sandbox_sim.domain.double_entry import accounts
from sandbox_sim.domain.double_entry.accounts import Account
from sandbox_sim.domain.double_entry.entries import BadTransfer, Entry, Reason, Transfer
from sandbox_sim.domain.double_entry.holds import Hold
from sandbox_sim.domain.ledger import Account as Wallet
from sandbox_sim.domain.networks.attempts import Attempt
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.vocabulary import Operation

_RECEIVED: Final[Mapping[Operation, tuple[Wallet, Reason]]] = MappingProxyType(
    {
        Operation.COLLECT: (Wallet.COLLECTION, Reason.COLLECTED),
        Operation.CARD: (Wallet.COLLECTION, Reason.COLLECTED),
        Operation.DEPOSIT: (Wallet.PAYOUT, Reason.DEPOSITED),
    }
)


def hold_for(attempt: Attempt) -> Hold | None:
    """The hold that an accepted payment needs; None where it spends nothing of the service's."""
    wallet = ledger.spent_from(attempt.operation)
    if wallet is None:
        return None
    return Hold(
        attempt.network_transaction_id,
        attempt.service_id,
        wallet,
        attempt.currency,
        attempt.amount,
        attempt.created_at,
    )


def outside(asset: str, network: str) -> Account:
    """The account at the other end of what a service spends or receives.

    It is the clearing account of the network, but for SMS units and airtime, which are assets of
    ours: what we pay a network for them is not posted here.
    """
    if asset in {accounts.SMS_UNITS, accounts.AIRTIME}:
        return accounts.issued(asset)
    return accounts.clearing(network, asset)


def received(attempt: Attempt, at: datetime) -> Entry | None:
    """The entry of money that came in with a success; None where the operation brings none."""
    found = _RECEIVED.get(attempt.operation)
    if found is None:
        return None
    wallet, reason = found
    target = accounts.available(attempt.service_id, wallet, attempt.currency)
    source = outside(target.asset, attempt.network)
    transfer = Transfer(source, target, attempt.amount)
    return Entry(reason, attempt.network_transaction_id, at, [transfer])


def suspended(attempt: Attempt, at: datetime) -> Entry | None:
    """The entry of a contradiction: between the network and suspense, never of the service.

    The account of the network then agrees with the network, and suspense has what that costs or
    brings until a person decides. None where the network says only that it is pending: no money
    moved yet.
    """
    if attempt.contradicted_by not in {Outcome.SUCCEEDED, Outcome.FAILED}:
        return None
    wallet = ledger.spent_from(attempt.operation)
    asset = attempt.currency if wallet is None else accounts.asset_of(wallet, attempt.currency)
    other_end, suspense = outside(asset, attempt.network), accounts.suspense(asset)
    # Money that comes in lowers clearing; money that goes out raises it. FAILED undoes either.
    comes_in = attempt.operation in _RECEIVED
    raises = comes_in is (attempt.contradicted_by is Outcome.FAILED)
    source, target = (suspense, other_end) if raises else (other_end, suspense)
    transfer = Transfer(source, target, attempt.amount)
    return Entry(Reason.SUSPENDED, attempt.network_transaction_id, at, [transfer])


def charged(service_id: int, units: int, subject: str, at: datetime) -> Entry:
    """The entry of SMS units that a service spends on a send; all recipients are charged at once.

    subject: the processing_id or the batch_id.
    """
    source = accounts.available(service_id, Wallet.SMS, accounts.SMS_UNITS)
    transfer = Transfer(source, accounts.issued(accounts.SMS_UNITS), Decimal(units))
    return Entry(Reason.CHARGE, subject, at, [transfer])


def refunded(attempt: Attempt, at: datetime) -> Entry:
    """The entry that gives the units of a message back."""
    target = accounts.available(attempt.service_id, Wallet.SMS, accounts.SMS_UNITS)
    transfer = Transfer(accounts.issued(accounts.SMS_UNITS), target, attempt.amount)
    return Entry(Reason.REFUND, attempt.network_transaction_id, at, [transfer])


def topup(
    service_id: int, wallet: Wallet, currency: str, amount: Decimal, subject: str, at: datetime
) -> Entry:
    """The entry of SMS units, or of airtime, that an operator gives to a service.

    Raises:
        BadTransfer: the wallet holds money. Payout funds come by a deposit (DTTW).
    """
    asset = accounts.asset_of(wallet, currency)
    source = accounts.issued(asset)
    target = accounts.available(service_id, wallet, currency)
    if asset == currency:
        raise BadTransfer(f"{target} holds money, which comes by a deposit and not by a top-up")
    return Entry(Reason.TOPUP, subject, at, [Transfer(source, target, amount)])
