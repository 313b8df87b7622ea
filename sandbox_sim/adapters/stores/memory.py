"""State in memory: plain dicts and the status cache; gone when the process ends.

Writes happen at once and note how to take them back, so a unit of work that raises leaves nothing
behind. Nothing here suspends, so units never mix.
"""

import heapq
import itertools
import math
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeVar

from cachetools import TLRUCache

from sandbox_sim.domain.callbacks import KEPT_CALLBACKS, Callback, Delivery
from sandbox_sim.domain.checkout import Checkout
from sandbox_sim.domain.inbox import KEPT_INBOX_MESSAGES, InboxMessage
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.ledger import Account, Balance, Posting
from sandbox_sim.domain.sms import HistoryQuery, Message
from sandbox_sim.domain.transactions import Transaction
from sandbox_sim.gateway.ports import Clock, Unit

_A_MINUTE: Final = timedelta(minutes=1)

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

# A job as the heap orders it: due_at, number, kind, service_id, subject.
_Entry = tuple[datetime, int, JobKind, int, str]


class _StatusCache(TLRUCache[datetime, list[str]]):
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
        self._minute: datetime | None = None
        self._ids: list[str] = []

    def add(self, transaction: Transaction) -> None:
        """Keep a transaction for its term."""
        network_id = transaction.network_transaction_id
        self.records[network_id] = transaction
        self._keep(network_id, transaction.expires_at)

    def find(self, network_id: str) -> Transaction | None:
        """The transaction, unless its term is over."""
        found = self.records.get(network_id)
        return None if found is None or found.kept_until <= self._clock.now() else found

    def expire(self, time: float | None = None) -> list[tuple[datetime, list[str]]]:
        """Forget what is over; what is pending still is kept longer."""
        ended = super().expire(time)
        for minute, ids in ended:
            for transaction in filter(None, map(self.records.get, ids)):
                self._forget(transaction, minute)
        return ended

    def _forget(self, transaction: Transaction, minute: datetime) -> None:
        network_id = transaction.network_transaction_id
        if transaction.kept_until > minute:
            self._keep(network_id, transaction.kept_until)
            return
        del self.records[network_id]
        if self.current.get(transaction.transaction_id) == network_id:
            del self.current[transaction.transaction_id]

    def _keep(self, network_id: str, until: datetime) -> None:
        minute = until.replace(second=0, microsecond=0) + _A_MINUTE
        if minute != self._minute:
            self._minute, self._ids = minute, self.setdefault(minute, [])
        self._ids.append(network_id)


# A term is a moment of gateway time; cachetools only compares it with what its timer says.
def _end_of_term(minute: datetime, _ids: list[str], _now: object) -> datetime:
    return minute


def _kept_until(_id: str, record: Checkout, _now: object) -> datetime:
    return record.kept_until


@dataclass(slots=True)
class _Service:
    """Everything that belongs to one `service_id`."""

    transactions: _StatusCache
    callbacks: dict[str, Callback] = field(default_factory=dict)
    finished: deque[str] = field(default_factory=deque)
    balances: dict[Account, Balance] = field(default_factory=dict)
    postings: list[Posting] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)
    batches: dict[str, list[str]] = field(default_factory=dict)


class MemoryStore:
    """The `Store` of the fixtures, and of `serve --store memory:`."""

    def __init__(self, clock: Clock) -> None:
        self._unit = _MemoryUnit(clock)
        self._notice: Callable[[datetime], None] | None = None

    async def open(self) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        """What was kept is gone with the process."""

    def watch_jobs(self, notice: Callable[[datetime], None]) -> None:
        """Call `notice` with its due time whenever a job was added."""
        self._notice = notice

    async def run(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        """Do `work`; if it raises, take back what it wrote."""
        unit = self._unit
        unit.undo.clear()
        unit.added = None
        try:
            result = await work(unit)
        except BaseException:
            for take_back in reversed(unit.undo):
                take_back()
            raise
        if unit.added is not None and self._notice is not None:
            self._notice(unit.added)
        return result


class _MemoryUnit:
    """The one unit of work; `undo` and `added` belong to the run in hand."""

    def __init__(self, clock: Clock) -> None:
        self.undo: list[Callable[[], object]] = []
        self.added: datetime | None = None
        self._clock = clock
        self._services: dict[int, _Service] = {}
        self._checkouts: TLRUCache[str, Checkout] = TLRUCache(
            maxsize=math.inf,
            ttu=_kept_until,  # type: ignore[arg-type]
            timer=clock.now,  # type: ignore[arg-type]
        )
        self._heap: list[_Entry] = []
        self._claimed: dict[int, _Entry] = {}
        self._numbers = itertools.count(1)
        self._shift: dict[str, timedelta] = {}
        self._inboxes: dict[str, deque[InboxMessage]] = defaultdict(
            lambda: deque(maxlen=KEPT_INBOX_MESSAGES)
        )

    def _service(self, service_id: int) -> _Service:
        service = self._services.get(service_id)
        if service is None:
            service = self._services[service_id] = _Service(_StatusCache(self._clock))
        return service

    async def transaction(self, service_id: int, transaction_id: str) -> Transaction | None:
        cache = self._service(service_id).transactions
        network_id = cache.current.get(transaction_id)
        found = None if network_id is None else cache.records.get(network_id)
        return None if found is None or found.expires_at <= self._clock.now() else found

    async def transaction_by_network_id(
        self, service_id: int, network_transaction_id: str
    ) -> Transaction | None:
        return self._service(service_id).transactions.find(network_transaction_id)

    async def add_transaction(self, transaction: Transaction) -> None:
        cache = self._service(transaction.service_id).transactions
        network_id = transaction.network_transaction_id
        cache.add(transaction)
        self.undo.append(lambda: cache.records.pop(network_id, None))
        self._put(cache.current, transaction.transaction_id, network_id)

    async def save_transaction(self, transaction: Transaction) -> None:
        records = self._service(transaction.service_id).transactions.records
        before = records[transaction.network_transaction_id]
        records[transaction.network_transaction_id] = transaction
        self.undo.append(lambda: records.__setitem__(before.network_transaction_id, before))

    async def checkout(self, checkout_id: str) -> Checkout | None:
        return self._checkouts.get(checkout_id)

    async def save_checkout(self, checkout: Checkout) -> None:
        self._put(self._checkouts, checkout.id, checkout)

    async def callback(self, service_id: int, callback_id: str) -> Callback | None:
        return self._service(service_id).callbacks.get(callback_id)

    async def callbacks(self, service_id: int) -> Sequence[Callback]:
        return list(reversed(self._service(service_id).callbacks.values()))

    async def save_callback(self, callback: Callback) -> None:
        service = self._service(callback.service_id)
        before = service.callbacks.get(callback.id)
        self._put(service.callbacks, callback.id, callback)
        finished_before = before is not None and before.state is not Delivery.PENDING
        if callback.state is Delivery.PENDING or finished_before:
            return
        service.finished.append(callback.id)
        self.undo.append(service.finished.pop)
        if len(service.finished) > KEPT_CALLBACKS:
            self._forget(service, service.finished.popleft())

    def _forget(self, service: _Service, callback_id: str) -> None:
        """Let the oldest finished callback go; taken back, it is the oldest again."""
        forgotten = service.callbacks.pop(callback_id)

        def take_back() -> None:
            service.finished.appendleft(callback_id)
            newer = dict(service.callbacks)
            service.callbacks.clear()
            service.callbacks.update({callback_id: forgotten, **newer})

        self.undo.append(take_back)

    async def add_job(self, job: Job) -> None:
        entry = (job.due_at, next(self._numbers), job.kind, job.service_id, job.subject)
        heapq.heappush(self._heap, entry)
        if self.added is None or job.due_at < self.added:
            self.added = job.due_at
        self.undo.append(lambda: self._drop(entry))

    async def claim_due(self, now: datetime, limit: int) -> Sequence[Job]:
        entries = list(itertools.islice(self._pop_due(now), limit))
        self._claimed.update((entry[1], entry) for entry in entries)
        self.undo.append(lambda: self._unclaim(entries))
        return [Job(due, kind, service, subject, n) for due, n, kind, service, subject in entries]

    async def finish(self, job: Job) -> None:
        entry = self._claimed.pop(job.number, None)
        if entry is not None:
            self.undo.append(lambda: self._claimed.__setitem__(job.number, entry))

    async def next_due(self) -> datetime | None:
        return self._heap[0][0] if self._heap else None

    def _pop_due(self, now: datetime) -> Iterator[_Entry]:
        while self._heap and self._heap[0][0] <= now:
            yield heapq.heappop(self._heap)

    def _drop(self, entry: _Entry) -> None:
        self._heap.remove(entry)
        heapq.heapify(self._heap)

    def _unclaim(self, entries: Sequence[_Entry]) -> None:
        for entry in entries:
            del self._claimed[entry[1]]
            heapq.heappush(self._heap, entry)

    async def balance(self, service_id: int, account: Account) -> Balance | None:
        return self._service(service_id).balances.get(account)

    async def post(self, posting: Posting) -> None:
        service = self._service(posting.service_id)
        before = service.balances.get(posting.account)
        amount = posting.amount if before is None else before.amount + posting.amount
        self._put(service.balances, posting.account, Balance(amount, posting.at))
        service.postings.append(posting)
        self.undo.append(service.postings.pop)

    async def postings(self, service_id: int) -> Sequence[Posting]:
        return list(self._service(service_id).postings)

    async def add_messages(self, messages: Sequence[Message]) -> None:
        service = self._service(messages[0].service_id)
        for message in messages:
            self._put(service.messages, message.processing_id, message)
        batch_id = messages[0].batch_id
        if batch_id is not None:
            self._put(service.batches, batch_id, [message.processing_id for message in messages])

    async def messages(self, service_id: int, subject: str) -> Sequence[Message]:
        service = self._service(service_id)
        ids = service.batches.get(subject, [subject])
        return [service.messages[i] for i in ids if i in service.messages]

    async def save_messages(self, messages: Sequence[Message]) -> None:
        for message in messages:
            kept = self._service(message.service_id).messages
            self._put(kept, message.processing_id, message)

    async def history(self, query: HistoryQuery) -> tuple[Sequence[Message], int]:
        kept = self._service(query.service_id).messages
        first = (query.page - 1) * query.limit
        if not query.filtered:
            if first >= len(kept):
                return [], len(kept)
            page = itertools.islice(reversed(kept.values()), first, first + query.limit)
            return list(page), len(kept)
        found = [message for message in reversed(kept.values()) if query.admits(message)]
        return found[first : first + query.limit], len(found)

    async def add_inbox_message(self, name: str, message: InboxMessage) -> None:
        inbox = self._inboxes[name]
        pushed_out = inbox[0] if len(inbox) == inbox.maxlen else None
        inbox.append(message)

        def take_back() -> None:
            inbox.pop()
            if pushed_out is not None:
                inbox.appendleft(pushed_out)

        self.undo.append(take_back)

    async def inbox_messages(self, name: str) -> Sequence[InboxMessage]:
        return list(reversed(self._inboxes[name])) if name in self._inboxes else []

    async def clear_inbox(self, name: str) -> int:
        inbox = self._inboxes.pop(name, None)
        if inbox is None:
            return 0
        self.undo.append(lambda: self._inboxes.__setitem__(name, inbox))
        return len(inbox)

    async def clock_shift(self) -> timedelta:
        return self._shift.get("clock", timedelta())

    async def save_clock_shift(self, shift: timedelta) -> None:
        self._put(self._shift, "clock", shift)

    def _put(self, kept: MutableMapping[K, V], key: K, value: V) -> None:
        """Set a key, noting what it was."""
        before = kept.get(key)
        kept[key] = value
        self.undo.append(lambda: _put_back(kept, key, before))


def _put_back(kept: MutableMapping[K, V], key: K, before: V | None) -> None:
    """Make a key what it was; None stands for not there."""
    if before is None:
        kept.pop(key, None)
    else:
        kept[key] = before
