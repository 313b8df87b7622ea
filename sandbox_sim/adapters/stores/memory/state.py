"""What the memory store holds: plain containers, of each service its own."""

import itertools
import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from cachetools import TLRUCache

from sandbox_sim.adapters.stores.memory.inboxes import Inboxes, PlacedMessage
from sandbox_sim.adapters.stores.memory.rollback import Undo
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

# A job as the heap orders it: due_at, number, kind, service_id, subject.
QueuedJob = tuple[datetime, int, JobKind, int, str]
# An entry of the journal and its place among those of all services.
PlacedEntry = tuple[int, Entry]


@dataclass(slots=True)
class Service:
    """Everything that belongs to one `service_id`.

    since: when it began, as a serial; jobs and checkouts with a smaller one are of before a reset.
    """

    since: int
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
    # The order in which callbacks and messages came: the clock may stand still.
    places: dict[str, int] = field(default_factory=dict)

    def copied(self, by: timedelta) -> "Service":
        """The same records in containers of their own, every time in them so much later."""
        return Service(*(copied(getattr(self, each.name), by) for each in fields(self)))


class Kept(NamedTuple):
    """What a snapshot holds, in containers of its own.

    jobs: in the order in which they fall due. rules: those of others too, for the order of them.
    """

    services: dict[int, Service]
    checkouts: list[CardPage]
    jobs: list[QueuedJob]
    inboxes: dict[str, deque[PlacedMessage]]
    rules: dict[str, UserRule]


def copied(kept: Any, by: timedelta) -> Any:
    """Containers anew, and what they hold with every time in it so much later."""
    match kept:
        case Service() | StatusCache():
            return kept.copied(by)
        case dict():
            return {key: copied(value, by) for key, value in kept.items()}
        case list() | deque():
            return type(kept)(copied(each, by) for each in kept)
        case _:
            return with_times_shifted(kept, by)


# A term is a moment of gateway time; cachetools only compares it with what its timer says.
def _expires_at(_id: str, record: tuple[int, CardPage], _now: object) -> datetime:
    return record[1].expires_at


class MemoryState(Undo):
    """The containers; `undo`, `added` and `announced` belong to the unit of work in hand."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.added: datetime | None = None
        self.announced: tuple[Topic, ...] = ()
        self._clock = clock
        self._numbers = itertools.count(1)
        self._serials = itertools.count(1)
        self._clock_state: ClockState | None = None
        self._first_free: int | None = None
        self._snapshots: dict[str, tuple[Snapshot, Kept]] = {}
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._services: dict[int, Service] = defaultdict(self._new_service)
        self._checkouts: TLRUCache[str, tuple[int, CardPage]] = TLRUCache(
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

    def _is_gone(self, service_id: int, serial: int) -> bool:
        """Whether what has this serial belonged to a service before it was reset."""
        service = self._services.get(service_id)
        return service is None or serial < service.since

    def _listed(self, service_id: int | None) -> Sequence[Service]:
        """The service, or all of them."""
        if service_id is None:
            return list(self._services.values())
        return [self._services[service_id]]
