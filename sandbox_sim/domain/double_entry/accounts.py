"""The accounts of production mode and their names. Source: D32, D39.

Every account holds one asset: a currency, SMS units or airtime. A service has for each wallet what
is available and what is held; available excludes what is held. Every other account is ours.

Signs: a service's account is what we owe it, so it is never below zero. Clearing is what we owe a
network less what it owes us: a collection makes it lower, a payout makes it higher.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from sandbox_sim.domain.ledger import Account as Wallet

SMS_UNITS: Final = "SMS"
AIRTIME: Final = "AIRTIME"
# The wallets that hold an asset of their own; the others hold the currency of the operation.
ASSET_OF_WALLET: Final = {Wallet.SMS: SMS_UNITS, Wallet.AIRTIME: AIRTIME}


class AccountKind(StrEnum):
    """What an account is for."""

    AVAILABLE = "available"  # of a service: what it may spend
    HELD = "held"  # of a service: set aside for an attempt that is not decided
    CLEARING = "clearing"  # of a network
    FEES = "fees"  # what we earned
    ISSUED = "issued"  # where topped up SMS units and airtime come from, and where used ones go
    SUSPENSE = "suspense"  # what a contradiction leaves until a person decides


OF_SERVICES: Final = frozenset({AccountKind.AVAILABLE, AccountKind.HELD})
# The accounts that are never below zero.
NEVER_NEGATIVE: Final = OF_SERVICES


class Account(NamedTuple):
    """The name of an account.

    service_id, wallet: of an account of a service, else 0 and None.
    network: of a clearing account, else empty.
    """

    kind: AccountKind
    asset: str
    service_id: int = 0
    wallet: Wallet | None = None
    network: str = ""

    @property
    def may_be_negative(self) -> bool:
        """Whether its balance may be below zero."""
        return self.kind not in NEVER_NEGATIVE

    def __str__(self) -> str:
        """The name as the ledger shows it, such as `service/55/payout/held/GHS`."""
        if self.kind in OF_SERVICES:
            wallet = "" if self.wallet is None else self.wallet.value
            return f"service/{self.service_id}/{wallet}/{self.kind}/{self.asset}"
        if self.kind is AccountKind.CLEARING:
            return f"network/{self.network}/{self.kind}/{self.asset}"
        return f"{self.kind}/{self.asset}"


def asset_of(wallet: Wallet, currency: str) -> str:
    """The asset that a wallet holds."""
    return ASSET_OF_WALLET.get(wallet, currency)


def available(service_id: int, wallet: Wallet, currency: str) -> Account:
    """What a service may spend of a wallet."""
    return Account(AccountKind.AVAILABLE, asset_of(wallet, currency), service_id, wallet)


def held(service_id: int, wallet: Wallet, currency: str) -> Account:
    """What is set aside of a service's wallet."""
    return Account(AccountKind.HELD, asset_of(wallet, currency), service_id, wallet)


def clearing(network: str, asset: str) -> Account:
    """The account of what we and a network owe each other."""
    return Account(AccountKind.CLEARING, asset, network=network)


def suspense(asset: str) -> Account:
    """The account of what a person must decide about."""
    return Account(AccountKind.SUSPENSE, asset)


def issued(asset: str) -> Account:
    """The account that units of an asset of ours come from."""
    return Account(AccountKind.ISSUED, asset)


def fees(asset: str) -> Account:
    """The account of what we earned."""
    return Account(AccountKind.FEES, asset)
