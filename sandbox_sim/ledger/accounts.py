"""Balances of a service: the fixed figures of sandbox.9, or wallets that move (D21, D22)."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from sandbox_sim.ledger import movements
from sandbox_sim.ledger.movements import fixed_balance
from sandbox_sim.operations import Operation
from sandbox_sim.ports import Unit
from sandbox_sim.records.ledger import ZERO, Balance, Reason, wallet_of
from sandbox_sim.records.transactions import TransactionRecord
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet

# Constants, because Python 3.11 takes half a microsecond to find a member of an enum.
_SANDBOX: Final = ServiceMode.SANDBOX

_PAYOUT: Final = Operation.PAYOUT


@dataclass(frozen=True, slots=True)
class Accounts:
    """Reads and moves the balances of services.

    live: whether balances move; the setting `balances`.
    sms_initial_units: the units that an SMS account opens with.
    """

    live: bool = False
    sms_initial_units: int = 500

    async def balance(self, unit: Unit, service_id: int, wallet: Wallet, now: datetime) -> Balance:
        """The balance of a wallet; opens the wallet if it is new. Locks it until the unit ends."""
        balance = await unit.balance(wallet_of(_SANDBOX, service_id, wallet))
        if balance is None:
            opening = movements.opening(service_id, wallet, self.sms_initial_units, now)
            await unit.add_transfer(opening)
            balance = Balance(opening.amount, ZERO, now)
        return balance

    async def reported_balance(
        self, unit: Unit, service_id: int, wallet: Wallet, now: datetime
    ) -> Decimal:
        """The balance that `get_account_balance` shows and that a payment must not exceed."""
        if not self.live:
            return fixed_balance(service_id, wallet)
        return (await self.balance(unit, service_id, wallet, now)).available

    def wallet_to_check(self, operation: Operation, *, is_refund: bool = False) -> Wallet | None:
        """The wallet that must cover what an operation spends; None if no balance is checked.

        With fixed balances only payouts are checked, and refunds, which are payouts out of the
        wallet of collections (D45).
        """
        if is_refund:
            return Wallet.COLLECTION
        return operation.row.spends if self.live or operation is _PAYOUT else None

    async def post(self, unit: Unit, transaction: TransactionRecord) -> None:
        """Post what the transaction moves in its present status, where balances move."""
        transfer = movements.of_transaction(transaction)
        account = None if transfer is None else transfer.account
        if transfer is None or account is None or account.wallet is None:
            return
        await self.balance(unit, transaction.service_id, account.wallet, transfer.at)
        await unit.add_transfer(transfer)

    async def charge(
        self, unit: Unit, service_id: int, units: int, subject: str, now: datetime
    ) -> int | None:
        """Take SMS units; returns how many are left, or None if there are too few to take."""
        balance = await self.balance(unit, service_id, Wallet.SMS, now)
        remaining = int(balance.available) - units
        if remaining < 0:
            return None
        await self._post_units(unit, Reason.CHARGE, service_id, units, subject, now)
        return remaining

    async def topup(self, unit: Unit, service_id: int, units: int, now: datetime) -> int:
        """Add SMS units; returns how many the service then has."""
        balance = await self.balance(unit, service_id, Wallet.SMS, now)
        await self._post_units(unit, Reason.TOPUP, service_id, units, "", now)
        return int(balance.available) + units

    async def refund(
        self, unit: Unit, service_id: int, units: int, subject: str, now: datetime
    ) -> None:
        """Give SMS units back."""
        await self._post_units(unit, Reason.REFUND, service_id, units, subject, now)

    @staticmethod
    async def _post_units(
        unit: Unit, reason: Reason, service_id: int, units: int, subject: str, now: datetime
    ) -> None:
        await unit.add_transfer(
            movements.sms_units(reason, _SANDBOX, service_id, units, subject, now)
        )
