"""The status cache of the memory store: keeps transactions until they expire after 15 minutes."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from cachetools import TLRUCache

from sandbox_sim.domain.control.snapshots import with_times_shifted
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.gateway.ports import Clock

_TERM: Final = timedelta(minutes=1)


class StatusCache(TLRUCache[datetime, list[str]]):
    """Transactions by network id until they expire, and the current one of each `transaction_id`.

    cachetools keeps the terms: lists of the ids that may be deleted at the end of each minute. It
    is used once a minute and not for each transaction, so it does not slow down requests. The
    minute decides only when memory is freed, because `find` and `newest_first` check the time
    themselves.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(maxsize=math.inf, ttu=_end_of_term, timer=clock.now)  # type: ignore[arg-type]
        self.records: dict[str, Transaction] = {}
        self.current: dict[str, str] = {}
        self._clock = clock
        # The minute in which the newest transaction expires, and the ids of that minute.
        self._term_start = self._term_end = clock.now()
        self._ids: list[str] = []

    def add(self, transaction: Transaction) -> None:
        """Add a transaction."""
        network_id = transaction.network_transaction_id
        self.records[network_id] = transaction
        self._add_to_term(network_id, transaction.expires_at)

    def find(self, network_id: str) -> Transaction | None:
        """The transaction, unless it is over."""
        found = self.records.get(network_id)
        return None if found is None or found.is_over(self._clock.now()) else found

    def newest_first(self, after: str | None = None) -> Iterator[Transaction]:
        """Transactions that are not over; with `after`, those older than this network id."""
        now, network_ids = self._clock.now(), reversed(self.records)
        if after is not None:
            _ = after in network_ids  # consumes everything up to and including that id
        return (t for t in map(self.records.__getitem__, network_ids) if not t.is_over(now))

    def expire(self, time: float | None = None) -> list[tuple[datetime, list[str]]]:
        """Delete what is over; what will still settle is checked again in a minute."""
        ended, now = super().expire(time), self._clock.now()
        for _, ids in ended:
            for transaction in filter(None, map(self.records.get, ids)):
                if transaction.expires_at <= now:  # a unit that was rolled back left its id here
                    self._forget(transaction)
        return ended

    def copy_shifted(self, shift: timedelta) -> "StatusCache":
        """A copy of the transactions that are not over, with their times shifted."""
        now, other = self._clock.now(), StatusCache(self._clock)
        for network_id, transaction in self.records.items():
            moved = with_times_shifted(transaction, shift)
            if not moved.is_over(now):
                other.records[network_id] = moved
                other._add_to_term(network_id, max(moved.expires_at, now))
        other.current = {name: i for name, i in self.current.items() if i in other.records}
        return other

    def _forget(self, transaction: Transaction) -> None:
        network_id = transaction.network_transaction_id
        if transaction.settles_by_itself:
            self._add_to_term(network_id, self._clock.now())
            return
        del self.records[network_id]
        if self.current.get(transaction.transaction_id) == network_id:
            del self.current[transaction.transaction_id]

    def _add_to_term(self, network_id: str, until: datetime) -> None:
        if not self._term_start <= until < self._term_end:
            begin = until.replace(second=0, microsecond=0)
            ids = self.setdefault(
                begin + _TERM, []
            )  # this may expire other terms and start new ones
            self._term_start, self._term_end, self._ids = begin, begin + _TERM, ids
        self._ids.append(network_id)


# cachetools accepts any comparable value as the expiry; this one is gateway time.
def _end_of_term(minute: datetime, _ids: list[str], _now: object) -> datetime:
    return minute
