"""The state of the memory store: its containers for each service, its jobs, and the rollback."""

import heapq
import itertools
import math
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from cachetools import TLRUCache

from sandbox_sim.ports import Clock, JobLost, Topic
from sandbox_sim.ports.clock import ClockState
from sandbox_sim.records import inbox
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import CallbackRecord
from sandbox_sim.records.events import EventType, StoredChange
from sandbox_sim.records.inbox import InboxMessage
from sandbox_sim.records.jobs import DELIVERY_KINDS, LISTED_AFTER, LIVE_KINDS, Job, JobKind
from sandbox_sim.records.journal import JournalEntry
from sandbox_sim.records.ledger import Account, Balance, LedgerLine, Transfer
from sandbox_sim.records.messages import Message
from sandbox_sim.records.overrides import UserRule
from sandbox_sim.records.snapshots import Snapshot, with_times_shifted
from sandbox_sim.records.transactions import CardPage
from sandbox_sim.stores.memory.status_cache import StatusCache
from sandbox_sim.values.clients import ServiceMode

# A message and its number among those of all inboxes; the smallest number is the oldest.
NumberedMessage = tuple[int, InboxMessage]

Boxes = Mapping[str, deque[NumberedMessage]]


class Inboxes:
    """Messages by inbox. Where all together are too large, the oldest of all is removed.

    boxes: the part that a snapshot stores.
    """

    def __init__(self, boxes: Boxes | None = None) -> None:
        self.boxes: dict[str, deque[NumberedMessage]] = defaultdict(deque, boxes or {})
        self._rebuild_index()

    def newest_first(self, name: str) -> Iterator[InboxMessage]:
        """The messages of an inbox."""
        return (message for _, message in reversed(self.boxes.get(name, ())))

    def add(self, name: str, number: int, message: InboxMessage) -> Callable[[], None]:
        """Add a message and remove the oldest ones that exceed a limit; returns a rollback
        function.

        number: a number larger than any before.
        """
        removed: list[tuple[str, NumberedMessage]] = []
        if len(self.boxes.get(name, ())) >= inbox.KEPT_INBOX_MESSAGES:
            removed.append((name, self._remove_oldest(name)))
        self.boxes[name].append((number, message))
        self._inbox_names[number] = name
        self._size += inbox.size_of(message)
        while self._size > inbox.KEPT_INBOX_BYTES:
            oldest = next(iter(self._inbox_names.values()))
            removed.append((oldest, self._remove_oldest(oldest)))

        def undo() -> None:
            for each, numbered in reversed(removed):
                self.boxes[each].appendleft(numbered)
            self.boxes[name].pop()  # the message itself, which is the newest of its inbox
            if not self.boxes[name]:
                del self.boxes[name]
            self._rebuild_index()

        return undo

    def clear(self, name: str) -> tuple[int, Callable[[], None]]:
        """Empty an inbox; returns the number of its messages and a rollback function."""
        box = self.boxes.pop(name, deque())
        for number, message in box:
            del self._inbox_names[number]
            self._size -= inbox.size_of(message)

        def undo() -> None:
            if box:
                self.boxes[name] = box
                self._rebuild_index()

        return len(box), undo

    def _remove_oldest(self, name: str) -> NumberedMessage:
        number, message = numbered = self.boxes[name].popleft()
        if not self.boxes[name]:
            del self.boxes[name]
        del self._inbox_names[number]
        self._size -= inbox.size_of(message)
        return numbered

    def _rebuild_index(self) -> None:
        """Compute the order of all messages and their size in bytes again."""
        numbered = [(number, name) for name, box in self.boxes.items() for number, _ in box]
        self._inbox_names: OrderedDict[int, str] = OrderedDict(sorted(numbered))
        self._size = sum(
            inbox.size_of(message) for box in self.boxes.values() for _, message in box
        )


# Constants, because Python 3.11 takes half a microsecond to find a member of an enum.
_SANDBOX: Final = ServiceMode.SANDBOX

_LIVE: Final = ServiceMode.PRODUCTION

# A heap with fewer jobs than this is not swept.
_MIN_SWEEP_SIZE: Final = 64


K = TypeVar("K")

V = TypeVar("V")


class Rollback:
    """Writes to plain containers that can be rolled back.

    `undo` has a function for each write so far; called in reverse order, they roll the writes back.
    """

    def __init__(self) -> None:
        self.undo: list[Callable[[], object]] = []

    def _replace(self, name: str, value: object, owner: object = None) -> None:
        """Set an attribute, of this object if there is no other owner."""
        owner = self if owner is None else owner
        self.undo.append(partial(setattr, owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _remove(self, mapping: MutableMapping[K, V], key: K) -> None:
        self.undo.append(partial(mapping.__setitem__, key, mapping.pop(key)))

    def _set(self, mapping: MutableMapping[K, V], key: K, value: V) -> None:
        before = mapping.get(key)
        mapping[key] = value
        self.undo.append(lambda: _restore(mapping, {key: before}))

    def _update(self, mapping: MutableMapping[K, V], values: Mapping[K, V]) -> None:
        """Set many keys, with one function that rolls all of them back."""
        before = {key: mapping.get(key) for key in values}
        mapping.update(values)
        self.undo.append(lambda: _restore(mapping, before))


def _restore(mapping: MutableMapping[K, V], before: Mapping[K, V | None]) -> None:
    """Set keys to their old values; None means that a key did not exist."""
    for key, value in before.items():
        if value is None:
            mapping.pop(key, None)
        else:
            mapping[key] = value


# A job in the order of the heap: due_at, number, kind, service_id, subject.
QueuedJob = tuple[datetime, int, JobKind, int, str, int]

# An entry of the journal, after its number among those of all services.
NumberedEntry = tuple[int, JournalEntry]


@dataclass(slots=True)
class Service:
    """Everything that belongs to one `service_id`.

    created: the serial at its creation; jobs and card pages with a smaller serial are from before a
    reset.
    """

    created: int
    transactions: StatusCache
    callbacks: dict[str, CallbackRecord] = field(default_factory=dict)
    finished: deque[str] = field(default_factory=deque)
    balances: dict[Account, Balance] = field(default_factory=dict)
    lines: list[LedgerLine] = field(default_factory=list)
    pending: dict[int, Transfer] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    batches: dict[str, list[str]] = field(default_factory=dict)
    entries: deque[NumberedEntry] = field(default_factory=deque)
    dropped: int = 0
    claimed: dict[int, QueuedJob] = field(default_factory=dict)
    # Serial numbers of callbacks and messages, by id: a frozen clock gives many the same time.
    numbers: dict[str, int] = field(default_factory=dict)

    def copy_shifted(self, shift: timedelta) -> "Service":
        """A copy in new containers, with `shift` added to every time."""
        return Service(*(copy_shifted(getattr(self, each.name), shift) for each in fields(self)))


class SnapshotData(NamedTuple):
    """The content of a snapshot, in containers of its own.

    jobs: in the order in which they fall due.
    rules: those of other services too, because their order matters.
    """

    services: dict[int, Service]
    checkouts: list[CardPage]
    jobs: list[QueuedJob]
    inboxes: dict[str, deque[NumberedMessage]]
    rules: dict[str, UserRule]


def copy_shifted(item: Any, shift: timedelta) -> Any:
    """A copy of containers, with `shift` added to every time in the records."""
    match item:
        case Service() | StatusCache():
            return item.copy_shifted(shift)
        case dict():
            return {key: copy_shifted(value, shift) for key, value in item.items()}
        case list() | deque():
            return type(item)(copy_shifted(each, shift) for each in item)
        case _:
            return with_times_shifted(item, shift)


# cachetools accepts any comparable value as the expiry; this one is gateway time.
def _expires_at(_id: str, record: tuple[int, CardPage], _now: object) -> datetime:
    return record[1].expires_at


class MemoryState(Rollback):
    """The containers.

    `undo`, `earliest_due`, `announced` and `changes` belong to the current unit of work.
    changes: what it wrote; None while changes are not watched.
    """

    def __init__(self, clock: Clock, keep_transactions: int) -> None:
        super().__init__()
        self._keep_transactions = keep_transactions
        self.earliest_due: datetime | None = None
        self.announced: tuple[Topic, ...] = ()
        self.changes: list[StoredChange] | None = None
        self._clock = clock
        self._numbers = itertools.count(1)
        self._serials = itertools.count(1)
        self._clock_state: ClockState | None = None
        self._behaviour: Behaviour | None = None
        self._first_free: int | None = None
        self._snapshots: dict[str, tuple[Snapshot, SnapshotData]] = {}
        # Of production mode: no reset touches these.
        self._live_sums: dict[Account, Decimal] = {}
        self._live_services: dict[int, Service] = defaultdict(
            lambda: Service(next(self._serials), StatusCache(self._clock))
        )
        self._live_claims: dict[int, QueuedJob] = {}
        self._clear()

    def _clear(self) -> None:
        self._services: dict[int, Service] = defaultdict(self._new_service)
        self._card_pages: TLRUCache[str, tuple[int, CardPage]] = TLRUCache(
            maxsize=math.inf,
            ttu=_expires_at,  # type: ignore[arg-type]
            timer=self._clock.now,  # type: ignore[arg-type]
        )
        self._heap: list[QueuedJob] = []
        self._sweep_at = math.inf
        self._inboxes = Inboxes()
        self._rules: dict[str, UserRule] = {}

    def _record_changes(self, kind: EventType, *subjects: object) -> None:
        if self.changes is not None:
            self.changes.extend(StoredChange(kind, each) for each in subjects)

    def _new_service(self) -> Service:
        return Service(next(self._serials), StatusCache(self._clock, self._keep_transactions))

    def _was_reset(self, service_id: int, serial: int) -> bool:
        """Whether the service was reset since this serial was given."""
        service = self._services.get(service_id)
        return service is None or serial < service.created

    def _services_of(
        self, service_id: int | None, mode: ServiceMode | None = None
    ) -> Sequence[Service]:
        """What a service, or each of all (None), has in a mode, or in both (None)."""
        of_modes = {_SANDBOX: self._services, _LIVE: self._live_services}
        containers = of_modes.values() if mode is None else [of_modes[mode]]
        if service_id is None:
            return [each for services in containers for each in services.values()]
        return [services[service_id] for services in containers if service_id in services]

    def _service(self, mode: ServiceMode | None, service_id: int) -> Service:
        return (self._live_services if mode is _LIVE else self._services)[service_id]


class MemoryJobs(MemoryState):
    """The part of a `Unit` that stores jobs: those of all services, in one heap.

    The jobs of a service that was reset stay in the heap until they come up or the heap is swept,
    so the cost of a reset does not depend on the jobs of other services.
    """

    async def add_job(self, job: Job) -> None:
        due_at, kind, service_id, subject, _, failures = job
        _ = self._services[service_id]  # creates the service before its first job
        entry = (due_at, next(self._serials), kind, service_id, subject, failures)
        heapq.heappush(self._heap, entry)
        self._update_earliest_due(due_at)
        self.undo.append(partial(self._remove_job, entry))
        if len(self._heap) >= self._sweep_at:
            self._sweep()

    async def claim_due(self, now: datetime, limit: int) -> Sequence[Job]:
        entries = list(itertools.islice(self._pop_due(now), limit))
        if entries:
            for entry in entries:
                self._claims(entry[2], entry[3])[entry[1]] = entry
            self.undo.append(lambda: self._unclaim(entries))
        return [_job(entry) for entry in entries]

    async def finish(self, job: Job) -> None:
        claims = self._claims(job.kind, job.service_id)
        if job.number not in claims:
            raise JobLost(f"job {job.number} is finished or deleted")
        self._remove(claims, job.number)

    async def bring_forward(self, callback_ids: Collection[str], now: datetime) -> Sequence[str]:
        wanted = frozenset(callback_ids)
        chosen = {
            entry
            for entry in self._heap
            if entry[2] in DELIVERY_KINDS and entry[4] in wanted and not self._is_stale(entry)
        }
        if chosen:
            moved = ((min(e[0], now), *e[1:]) if e in chosen else e for e in self._heap)
            self._replace("_heap", [*moved])
            heapq.heapify(self._heap)
            self._update_earliest_due(now)
        return [entry[4] for entry in sorted(chosen)]

    async def jobs_after(self, moment: datetime) -> Sequence[Job]:
        later = sorted(each for each in self._heap if each[0] > moment and not self._is_stale(each))
        return [_job(entry) for entry in later]

    async def next_jobs(self, limit: int) -> Sequence[Job]:
        # From the top of the heap down, so that a long heap costs no more than a short one.
        frontier = [(self._heap[0], 0)] if self._heap else []
        found: list[Job] = []
        while frontier and len(found) < limit:
            entry, index = heapq.heappop(frontier)
            for child in range(2 * index + 1, min(2 * index + 3, len(self._heap))):
                heapq.heappush(frontier, (self._heap[child], child))
            if not self._is_stale(entry):
                found.append(_job(entry))
        return found

    async def next_due(self) -> datetime | None:
        while self._heap and self._is_stale(self._heap[0]):
            self._restore_on_undo(heapq.heappop(self._heap))
        return self._heap[0][0] if self._heap else None

    async def failed_jobs(self, limit: int) -> Sequence[Job]:
        live = (*self._heap, *self._live_claims.values())
        claimed = (entry for each in self._services.values() for entry in each.claimed.values())
        failed = [e for e in (*live, *claimed) if e[5] >= LISTED_AFTER and not self._is_stale(e)]
        return [_job(entry) for entry in sorted(failed, key=lambda entry: entry[1])[:limit]]

    def _update_earliest_due(self, due_at: datetime) -> None:
        if self.earliest_due is None or due_at < self.earliest_due:
            self.earliest_due = due_at

    def _pop_due(self, now: datetime) -> Iterator[QueuedJob]:
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if self._is_stale(entry):
                self._restore_on_undo(entry)
            else:
                yield entry

    def _restore_on_undo(self, entry: QueuedJob) -> None:
        self.undo.append(partial(heapq.heappush, self._heap, entry))

    def _is_stale(self, entry: QueuedJob) -> bool:
        return self._was_reset(entry[3], entry[1]) and entry[2] not in LIVE_KINDS

    def _claims(self, kind: JobKind, service_id: int) -> dict[int, QueuedJob]:
        """The claimed jobs of this kind and service, by their numbers."""
        return self._live_claims if kind in LIVE_KINDS else self._services[service_id].claimed

    def _sweep_later(self) -> None:
        """Plan a sweep for when the heap has twice its size, because it may have stale jobs now."""
        self._sweep_at = min(self._sweep_at, 2 * len(self._heap) + _MIN_SWEEP_SIZE)

    def _sweep(self) -> None:
        self._replace("_heap", [entry for entry in self._heap if not self._is_stale(entry)])
        heapq.heapify(self._heap)
        self._sweep_at = math.inf

    def _remove_job(self, entry: QueuedJob) -> None:
        self._heap.remove(entry)
        heapq.heapify(self._heap)

    def _unclaim(self, entries: Sequence[QueuedJob]) -> None:
        for entry in entries:
            del self._claims(entry[2], entry[3])[entry[1]]
            heapq.heappush(self._heap, entry)


def _job(entry: QueuedJob) -> Job:
    due_at, number, kind, service_id, subject, failures = entry
    return Job(due_at, kind, service_id, subject, number, failures)
