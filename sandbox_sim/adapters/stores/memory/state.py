"""The containers of the memory store, separate for each service."""

import itertools
import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from cachetools import TLRUCache

from sandbox_sim.adapters.stores.memory.inboxes import Inboxes, PlacedMessage
from sandbox_sim.adapters.stores.memory.rollback import Rollback
from sandbox_sim.adapters.stores.memory.status_cache import StatusCache
from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.control.clock import ClockState
from sandbox_sim.domain.control.journal import Entry
from sandbox_sim.domain.control.snapshots import Snapshot, with_times_shifted
from sandbox_sim.domain.control.user_rules import UserRule
from sandbox_sim.domain.jobs import JobKind
from sandbox_sim.domain.ledger import Account, Balance, LedgerLine
from sandbox_sim.domain.payments.card_page import CardPage
from sandbox_sim.domain.sms.sms_messages import Message
from sandbox_sim.gateway.ports import Clock, Topic

# A job in the order of the heap: due_at, number, kind, service_id, subject.
QueuedJob = tuple[datetime, int, JobKind, int, str]
# An entry of the journal, after its number among those of all services.
PlacedEntry = tuple[int, Entry]


@dataclass(slots=True)
class Service:
    """Everything that belongs to one `service_id`.

    created: the serial at its creation; jobs and card pages with a smaller serial are from before a
    reset.
    """

    created: int
    transactions: StatusCache
    callbacks: dict[str, Callback] = field(default_factory=dict)
    finished: deque[str] = field(default_factory=deque)
    balances: dict[Account, Balance] = field(default_factory=dict)
    lines: list[LedgerLine] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)
    batches: dict[str, list[str]] = field(default_factory=dict)
    entries: deque[PlacedEntry] = field(default_factory=deque)
    dropped: int = 0
    claimed: dict[int, QueuedJob] = field(default_factory=dict)
    # Numbers that order callbacks and messages, because the clock may be frozen.
    places: dict[str, int] = field(default_factory=dict)

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
    inboxes: dict[str, deque[PlacedMessage]]
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

    `undo`, `earliest_added` and `announced` belong to the current unit of work.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.earliest_added: datetime | None = None
        self.announced: tuple[Topic, ...] = ()
        self._clock = clock
        self._numbers = itertools.count(1)
        self._serials = itertools.count(1)
        self._clock_state: ClockState | None = None
        self._first_free: int | None = None
        self._snapshots: dict[str, tuple[Snapshot, SnapshotData]] = {}
        # Of production mode: callbacks, SMS, requests and claimed jobs, which no reset touches.
        self._live_services: dict[int, Service] = defaultdict(self._new_service)
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

    def _new_service(self) -> Service:
        return Service(next(self._serials), StatusCache(self._clock))

    def _was_reset(self, service_id: int, serial: int) -> bool:
        """Whether the service was reset since this serial was given."""
        service = self._services.get(service_id)
        return service is None or serial < service.created

    def _services_of(self, service_id: int | None) -> Sequence[Service]:
        """The service, or all of them (None)."""
        if service_id is None:
            return list(self._services.values())
        return [self._services[service_id]]
