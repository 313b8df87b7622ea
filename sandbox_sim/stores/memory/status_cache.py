"""The status cache of the memory store: which transactions a status query still finds. D40."""

import math
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from cachetools import TLRUCache

from sandbox_sim.ports import Clock
from sandbox_sim.records.snapshots import with_times_shifted
from sandbox_sim.records.transactions import Status, TransactionRecord, answers_status
from sandbox_sim.values.clients import ServiceMode

_PRODUCTION: Final = ServiceMode.PRODUCTION

_TERM: Final = timedelta(minutes=1)

# How many are dropped at most when one is added.
_MAX_DROPPED: Final = 1000


class StatusCache(TLRUCache[datetime, list[str]]):
    """Transactions by network id, and the current one of each `transaction_id`.

    cachetools keeps the terms: lists of the ids that expire for status queries in each minute. What
    it gives back at the end of a minute may be dropped, oldest first, once more than `keep` are
    kept. It is used once a minute and not for each transaction, so it does not slow down requests.
    """

    def __init__(self, clock: Clock, keep: float = math.inf) -> None:
        super().__init__(maxsize=math.inf, ttu=_end_of_term, timer=clock.now)  # type: ignore[arg-type]
        self.records: dict[str, TransactionRecord] = {}
        self.current: dict[str, str] = {}
        self._clock = clock
        self._keep = keep
        self._expired: deque[str] = deque()
        # The minute in which the newest transaction expires, and the ids of that minute.
        self._term_start = self._term_end = clock.now()
        self._ids: list[str] = []

    def add(self, transaction: TransactionRecord) -> None:
        """Add a transaction; drop old ones if there are too many."""
        network_id = transaction.network_transaction_id
        self.records[network_id] = transaction
        if transaction.mode is _PRODUCTION:  # it is never dropped
            return
        self._add_to_term(network_id, transaction.expires_at)
        if len(self.records) > self._keep:
            self._drop_expired()

    def newest_first(self, after: str | None = None) -> Iterator[TransactionRecord]:
        """All transactions; with `after`, those older than this network id."""
        network_ids = reversed(self.records)
        if after is not None:
            _ = after in network_ids  # consumes everything up to and including that id
        return map(self.records.__getitem__, network_ids)

    def expire(self, time: float | None = None) -> list[tuple[datetime, list[str]]]:
        """End the terms that are over: what expired in them may be dropped."""
        ended = super().expire(time)
        for _, ids in ended:
            self._expired.extend(ids)
        return ended

    def copy_shifted(self, shift: timedelta) -> "StatusCache":
        """A copy of the transactions that are unexpired or open, with their times shifted."""
        now, other = self._clock.now(), StatusCache(self._clock, self._keep)
        for network_id, transaction in self.records.items():
            shifted = with_times_shifted(transaction, shift)
            if answers_status(shifted, now) or shifted.status is Status.PENDING:
                other.records[network_id] = shifted
                other._add_to_term(network_id, max(shifted.expires_at, now))
        other.current = {each.transaction_id: i for i, each in other.records.items()}
        return other

    def _drop_expired(self) -> None:
        """Drop the oldest transactions that may be dropped; check an open one again in a minute."""
        now = self._clock.now()
        for _ in range(min(len(self._expired), _MAX_DROPPED)):
            if len(self.records) <= self._keep:
                return
            network_id = self._expired.popleft()
            transaction = self.records.get(network_id)
            if transaction is None:  # its unit was rolled back
                continue
            if not transaction.may_be_dropped(now):
                self._add_to_term(network_id, max(transaction.expires_at, now))
                continue
            del self.records[network_id]
            if self.current.get(transaction.transaction_id) == network_id:
                del self.current[transaction.transaction_id]

    def _add_to_term(self, network_id: str, until: datetime) -> None:
        if not self._term_start <= until < self._term_end:
            begin = until.replace(second=0, microsecond=0)
            ids = self.setdefault(begin + _TERM, [])  # this may end other terms and start new ones
            self._term_start, self._term_end, self._ids = begin, begin + _TERM, ids
        self._ids.append(network_id)


# cachetools accepts any comparable value as the expiry; this one is gateway time.
def _end_of_term(minute: datetime, _ids: list[str], _now: object) -> datetime:
    return minute
