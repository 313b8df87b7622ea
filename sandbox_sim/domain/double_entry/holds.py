"""Holds: money set aside for an attempt. A hold ends once, by commit or by void. Source: D39."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from sandbox_sim.domain.double_entry import accounts
from sandbox_sim.domain.double_entry.accounts import Account
from sandbox_sim.domain.double_entry.entries import Entry, Reason, Transfer
from sandbox_sim.domain.ledger import Account as Wallet


class HoldState(StrEnum):
    """Where a hold stands."""

    OPEN = "open"
    COMMITTED = "committed"
    VOIDED = "voided"


class HoldEnded(Exception):
    """The hold was committed or voided before, and that is not done twice."""


class Hold(NamedTuple):
    """Money of a service that is set aside.

    id: the network_transaction_id of the transaction that it is for, or the id of a message.
    """

    id: str
    service_id: int
    wallet: Wallet
    currency: str
    amount: Decimal
    placed_at: datetime
    state: HoldState = HoldState.OPEN
    ended_at: datetime | None = None

    @property
    def available(self) -> Account:
        """Where its money comes from, and goes back to when it is voided."""
        return accounts.available(self.service_id, self.wallet, self.currency)

    @property
    def held(self) -> Account:
        """Where its money lies."""
        return accounts.held(self.service_id, self.wallet, self.currency)

    def placed(self) -> Entry:
        """The entry that sets the money aside. Posting it fails where too little is available."""
        transfer = Transfer(self.available, self.held, self.amount)
        return Entry(Reason.HOLD, self.id, self.placed_at, [transfer])

    def committed(self, target: Account, now: datetime) -> tuple["Hold", Entry]:
        """The hold whose money went out to `target`, and the entry that says so.

        Raises:
            HoldEnded: it ended before.
        """
        hold = self._ended(HoldState.COMMITTED, now)
        transfer = Transfer(self.held, target, self.amount)
        return hold, Entry(Reason.COMMIT, self.id, now, [transfer])

    def voided(self, now: datetime) -> tuple["Hold", Entry]:
        """The hold whose money is available again, and the entry that says so.

        Raises:
            HoldEnded: it ended before.
        """
        hold = self._ended(HoldState.VOIDED, now)
        transfer = Transfer(self.held, self.available, self.amount)
        return hold, Entry(Reason.VOID, self.id, now, [transfer])

    def _ended(self, state: HoldState, now: datetime) -> "Hold":
        if self.state is not HoldState.OPEN:
            raise HoldEnded(f"hold {self.id} is {self.state} since {self.ended_at}")
        return self._replace(state=state, ended_at=now)
