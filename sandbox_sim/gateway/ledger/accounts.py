"""Balances of a service: the fixed figures of sandbox.9, or accounts that move (D21, D22)."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from sandbox_sim.domain import ledger
from sandbox_sim.domain.ledger import Account, Balance, Posting
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.ports import Unit

# A constant, because Python 3.11 takes half a microsecond to find a member of an enum.
_PAYOUT: Final = Operation.PAYOUT


@dataclass(frozen=True, slots=True)
class Accounts:
    """Reads and moves the balances of services.

    live: whether balances move; the setting `balances`.
    sms_initial_units: the units that an SMS account opens with.
    """

    live: bool = False
    sms_initial_units: int = 500

    async def balance(
        self, unit: Unit, service_id: int, account: Account, now: datetime
    ) -> Balance:
        """An account's balance; opens the account if it has none. Locks it until the unit ends."""
        balance = await unit.balance(service_id, account)
        if balance is None:
            opening = ledger.opening_posting(service_id, account, self.sms_initial_units, now)
            await unit.post(opening)
            balance = Balance(opening.amount, now)
        return balance

    async def reported(
        self, unit: Unit, service_id: int, account: Account, now: datetime
    ) -> Decimal:
        """The balance that `get_account_balance` shows and that a payment must not exceed."""
        if not self.live:
            return ledger.fixed_balance(service_id, account)
        return (await self.balance(unit, service_id, account, now)).amount

    def checked(self, operation: Operation) -> Account | None:
        """The account that must cover what an operation spends; None if none is checked.

        With fixed balances only payouts are checked.
        """
        checks = self.live or operation is _PAYOUT
        return ledger.spent_from(operation) if checks else None

    async def move(self, unit: Unit, transaction: Transaction) -> None:
        """Post what the transaction moves in its present status; nothing if balances are fixed."""
        posting = ledger.posting_for(transaction) if self.live else None
        if posting is None:
            return
        await self.balance(unit, posting.service_id, posting.account, posting.at)
        await unit.post(posting)

    async def charge(
        self, unit: Unit, service_id: int, units: int, subject: str, now: datetime
    ) -> int | None:
        """Take SMS units; returns how many are left, or None if there are too few to take."""
        balance = await self.balance(unit, service_id, Account.SMS, now)
        left = int(balance.amount) - units
        if left < 0:
            return None
        await unit.post(Posting(service_id, Account.SMS, Decimal(-units), "charge", subject, now))
        return left

    async def topup(self, unit: Unit, service_id: int, units: int, now: datetime) -> int:
        """Add SMS units; returns how many there are then."""
        balance = await self.balance(unit, service_id, Account.SMS, now)
        await unit.post(Posting(service_id, Account.SMS, Decimal(units), "topup", "", now))
        return int(balance.amount) + units

    async def refund(
        self, unit: Unit, service_id: int, units: int, subject: str, now: datetime
    ) -> None:
        """Give SMS units back."""
        await unit.post(Posting(service_id, Account.SMS, Decimal(units), "refund", subject, now))
