"""State in memory: plain dicts and the status cache; gone when the process ends.

Writes happen at once and note how to take them back, so a unit of work that raises leaves nothing
behind. Nothing here suspends, so units never mix.
"""

import heapq
import itertools
import math
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from operator import attrgetter, itemgetter
from typing import Final, TypeVar

from cachetools import TLRUCache

from sandbox_sim.adapters.stores.status_cache import StatusCache
from sandbox_sim.adapters.stores.undo import Undo
from sandbox_sim.domain import ledger
from sandbox_sim.domain.callbacks import KEPT_CALLBACKS, Callback, Delivery
from sandbox_sim.domain.checkout import Checkout
from sandbox_sim.domain.inbox import KEPT_INBOX_MESSAGES, InboxMessage
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.journal import KEPT_REQUESTS, Entry
from sandbox_sim.domain.ledger import (
    Account,
    Audit,
    Balance,
    LedgerLine,
    LedgerQuery,
    Posting,
)
from sandbox_sim.domain.listing import Listing, stretch
from sandbox_sim.domain.sms import HistoryQuery, Message
from sandbox_sim.domain.transactions import Transaction
from sandbox_sim.gateway.ports import Clock, Unit

T = TypeVar("T")

# Where requests are kept whose body names no service; the ids of services begin at 1.
NO_SERVICE: Final = 0

# A job as the heap orders it: due_at, number, kind, service_id, subject.
_Entry = tuple[datetime, int, JobKind, int, str]
# An entry of the journal and its place among those of all services.
_Place = tuple[int, Entry]


# A term is a moment of gateway time; cachetools only compares it with what its timer says.
def _kept_until(_id: str, record: Checkout, _now: object) -> datetime:
    return record.kept_until


@dataclass(slots=True)
class _Service:
    """Everything that belongs to one `service_id`."""

    transactions: StatusCache
    callbacks: dict[str, Callback] = field(default_factory=dict)
    finished: deque[str] = field(default_factory=deque)
    balances: dict[Account, Balance] = field(default_factory=dict)
    lines: list[LedgerLine] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)
    batches: dict[str, list[str]] = field(default_factory=dict)
    entries: deque[_Place] = field(default_factory=deque)
    dropped: int = 0


class MemoryStore:
    """The `Store` of the fixtures, and of `serve --store memory:`."""

    def __init__(self, clock: Clock) -> None:
        self._unit = _MemoryUnit(clock)
        self._notice: Callable[[datetime], None] | None = None
        self._watchers: list[Callable[[], None]] = []

    async def open(self) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        """What was kept is gone with the process."""

    def watch(self, notice: Callable[[], None]) -> None:
        """Call `notice` whenever a unit has written something."""
        self._watchers.append(notice)

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
        if unit.undo:
            for notice in self._watchers:
                notice()
        return result


class _MemoryUnit(Undo):
    """The one unit of work; `undo` and `added` belong to the run in hand."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
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
        # The order in which records of all services came: the clock may stand still.
        self._places: dict[str, int] = {}
        self._shift: dict[str, timedelta] = {}
        self._lines: list[LedgerLine] = []
        self._line_numbers = itertools.count(1)
        self._inboxes: dict[str, deque[InboxMessage]] = defaultdict(deque)

    def _service(self, service_id: int) -> _Service:
        service = self._services.get(service_id)
        if service is None:
            service = self._services[service_id] = _Service(StatusCache(self._clock))
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

    async def callback(self, service_id: int | None, callback_id: str) -> Callback | None:
        services = self._listed(Listing(service_id))
        found = (service.callbacks.get(callback_id) for service in services)
        return next(filter(None, found), None)

    async def callbacks(self, service_id: int) -> Sequence[Callback]:
        return list(reversed(self._service(service_id).callbacks.values()))

    async def save_callback(self, callback: Callback) -> None:
        service = self._service(callback.service_id)
        before = service.callbacks.get(callback.id)
        if before is None:
            self._put(self._places, callback.id, next(self._numbers))
        self._put(service.callbacks, callback.id, callback)
        finished_before = before is not None and before.state is not Delivery.PENDING
        if callback.state is Delivery.PENDING or finished_before:
            return
        service.finished.append(callback.id)
        self.undo.append(service.finished.pop)
        if len(service.finished) > KEPT_CALLBACKS:
            self._forget(service, service.finished.popleft())

    def _forget(self, service: _Service, callback_id: str) -> None:
        """Let the oldest finished callback go; taken back, it is the oldest again.

        One that is sent once more is not finished, and comes here again when it is.
        """
        forgotten = service.callbacks.get(callback_id)
        if forgotten is None or forgotten.state is Delivery.PENDING:
            self.undo.append(lambda: service.finished.appendleft(callback_id))
            return
        self._take(self._places, callback_id)
        del service.callbacks[callback_id]

        def take_back() -> None:
            service.finished.appendleft(callback_id)
            newer = dict(service.callbacks)
            service.callbacks.clear()
            service.callbacks.update({callback_id: forgotten, **newer})

        self.undo.append(take_back)

    async def list_transactions(self, listing: Listing) -> Sequence[Transaction]:
        lists = [service.transactions.newest_first() for service in self._listed(listing)]
        # The ids of transactions count up.
        place_of = attrgetter("initiated_at", "network_transaction_id")
        return stretch(lists, listing, attrgetter("network_transaction_id"), place_of)

    async def list_callbacks(self, listing: Listing) -> Sequence[Callback]:
        lists = [reversed(service.callbacks.values()) for service in self._listed(listing)]
        return self._by_place(lists, listing, "id")

    async def list_messages(self, listing: Listing) -> Sequence[Message]:
        lists = [reversed(service.messages.values()) for service in self._listed(listing)]
        return self._by_place(lists, listing, "processing_id")

    def _by_place(self, lists: Iterable[Iterable[T]], listing: Listing, name: str) -> list[T]:
        name_of = attrgetter(name)
        return stretch(lists, listing, name_of, lambda record: self._places[name_of(record)])

    def _listed(self, listing: Listing) -> Sequence[_Service]:
        if listing.service_id is None:
            return list(self._services.values())
        return [self._service(listing.service_id)]

    async def add_entries(self, entries: Sequence[Entry]) -> None:
        pushed_out: list[tuple[_Service, list[_Place]]] = []
        for entry in entries:
            service = self._service(entry.service_id or NO_SERVICE)
            gone = [service.entries.popleft()] if len(service.entries) >= KEPT_REQUESTS else []
            service.dropped += len(gone)
            service.entries.append((next(self._numbers), entry))
            pushed_out.append((service, gone))

        def take_back() -> None:
            for service, gone in reversed(pushed_out):
                service.entries.pop()
                service.entries.extendleft(gone)
                service.dropped -= len(gone)

        self.undo.append(take_back)

    async def list_entries(self, listing: Listing) -> Sequence[Entry]:
        lists = [reversed(service.entries) for service in self._listed(listing)]
        found = stretch(lists, listing, lambda place: place[1].id, itemgetter(0))
        return [entry for _, entry in found]

    async def clear_entries(self, service_id: int | None) -> int:
        services = self._listed(Listing(service_id))
        cleared = sum(len(service.entries) for service in services)
        for service in services:
            self.undo.append(partial(setattr, service, "entries", service.entries))
            service.entries = deque()
        return cleared

    async def dropped_entries(self, service_id: int | None) -> int:
        return sum(service.dropped for service in self._listed(Listing(service_id)))

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
        opened = Balance(posting.amount, posting.at)
        balance = opened if before is None else before.after(posting)
        self._put(service.balances, posting.account, balance)
        line = LedgerLine(next(self._line_numbers), posting)
        for lines in (service.lines, self._lines):
            lines.append(line)
            self.undo.append(lines.pop)

    async def postings(self, service_id: int) -> Sequence[Posting]:
        return [line.posting for line in self._service(service_id).lines]

    async def ledger_page(self, query: LedgerQuery) -> Sequence[LedgerLine]:
        lines = self._lines
        if query.service_id is not None:
            lines = self._service(query.service_id).lines
        end = len(lines)
        if query.after is not None:
            end = bisect_left(lines, query.after, key=attrgetter("number"))
        older = (lines[place] for place in range(end - 1, -1, -1))
        return list(itertools.islice(filter(query.admits, older), query.limit))

    async def audit(self, service_id: int | None) -> Sequence[Audit]:
        chosen = list(self._services) if service_id is None else [service_id]
        return [audit for chosen_id in chosen for audit in self._audited(chosen_id)]

    def _audited(self, service_id: int) -> Iterator[Audit]:
        service = self._service(service_id)
        amounts: dict[Account, list[Decimal]] = defaultdict(list)
        for line in service.lines:
            amounts[line.posting.account].append(line.posting.amount)
        for account in Account:
            balance = service.balances.get(account)
            if balance is not None or account in amounts:
                held = Decimal(0) if balance is None else balance.amount
                yield Audit(service_id, account, held, ledger.total(amounts[account]))

    async def add_messages(self, messages: Sequence[Message]) -> None:
        service = self._service(messages[0].service_id)
        for message in messages:
            self._put(self._places, message.processing_id, next(self._numbers))
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
        first = query.first
        if not query.filtered:
            if first >= len(kept):
                return [], len(kept)
            page = itertools.islice(reversed(kept.values()), first, first + query.limit)
            return list(page), len(kept)
        found = [message for message in reversed(kept.values()) if query.admits(message)]
        return found[first : first + query.limit], len(found)

    async def add_inbox_message(self, name: str, message: InboxMessage) -> None:
        self._append(self._inboxes[name], message, KEPT_INBOX_MESSAGES)

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
