"""The status cache of the memory store: transactions until their fifteen minutes are over."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from cachetools import TLRUCache

from sandbox_sim.domain.control.snapshots import with_times_shifted
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.gateway.ports import Clock

_A_MINUTE: Final = timedelta(minutes=1)


class StatusCache(TLRUCache[datetime, list[str]]):
    """Transactions by network id until they expire, and which one a `transaction_id` names.

    What cachetools keeps is the terms: the ids that may be forgotten by the end of a minute. Asked
    once a minute, and not for each transaction, it costs a request nothing; and nothing hangs on
    the minute, because what has expired is not found, whether it is still here or not.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(maxsize=math.inf, ttu=_end_of_term, timer=clock.now)  # type: ignore[arg-type]
        self.records: dict[str, Transaction] = {}
        self.current: dict[str, str] = {}
        self._clock = clock
        # The minute that the last transaction's term ends in, and the ids of that minute.
        self._begin = self._end = clock.now()
        self._ids: list[str] = []

    def add(self, transaction: Transaction) -> None:
        """Keep a transaction for its term."""
        network_id = transaction.network_transaction_id
        self.records[network_id] = transaction
        self._keep(network_id, transaction.expires_at)

    def find(self, network_id: str) -> Transaction | None:
        """The transaction, unless its term is over."""
        found = self.records.get(network_id)
        return None if found is None or found.is_over(self._clock.now()) else found

    def newest_first(self, after: str | None = None) -> Iterator[Transaction]:
        """Every transaction whose term is not over, or those after the one of this network id."""
        now, network_ids = self._clock.now(), reversed(self.records)
        if after is not None:
            _ = after in network_ids  # takes all up to that one, without a look at any
        return (t for t in map(self.records.__getitem__, network_ids) if not t.is_over(now))

    def expire(self, time: float | None = None) -> list[tuple[datetime, list[str]]]:
        """Forget what is over; what is still to end by itself is looked at again in a minute."""
        ended, now = super().expire(time), self._clock.now()
        for _, ids in ended:
            for transaction in filter(None, map(self.records.get, ids)):
                if transaction.expires_at <= now:  # a unit that was taken back left its term here
                    self._forget(transaction)
        return ended

    def copied(self, by: timedelta) -> "StatusCache":
        """Another one with the transactions that are not over, every time so much later."""
        now, other = self._clock.now(), StatusCache(self._clock)
        for network_id, transaction in self.records.items():
            moved = with_times_shifted(transaction, by)
            if not moved.is_over(now):
                other.records[network_id] = moved
                other._keep(network_id, max(moved.expires_at, now))
        other.current = {name: i for name, i in self.current.items() if i in other.records}
        return other

    def _forget(self, transaction: Transaction) -> None:
        network_id = transaction.network_transaction_id
        if transaction.settles_by_itself:
            self._keep(network_id, self._clock.now())
            return
        del self.records[network_id]
        if self.current.get(transaction.transaction_id) == network_id:
            del self.current[transaction.transaction_id]

    def _keep(self, network_id: str, until: datetime) -> None:
        if not self._begin <= until < self._end:
            begin = until.replace(second=0, microsecond=0)
            ids = self.setdefault(begin + _A_MINUTE, [])  # which may let others go, and keep some
            self._begin, self._end, self._ids = begin, begin + _A_MINUTE, ids
        self._ids.append(network_id)


# A term is a moment of gateway time; cachetools only compares it with what its timer says.
def _end_of_term(minute: datetime, _ids: list[str], _now: object) -> datetime:
    return minute
