"""Waiting until enough records match, or until the state is as expected.

A waiter searches the store once, when it begins. From then on it receives every record of its kind
and service that is written, and keeps the ids of those that match. When it has enough of them, it
searches once more, for the answer. So a payment is not compared with the waiters of other services,
and once with each waiter of its own.
"""

import asyncio
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar, cast

from sandbox_sim.ports import Clock, Relay, Store
from sandbox_sim.records.events import Event, EventType

Shown = Mapping[str, object]


# These change many records at once; a waiter searches again after one of them.
_MANY_CHANGED: Final = frozenset({EventType.RESET, EventType.RESTORE, EventType.GAP})

# Real time, in seconds, after which a waiter searches again if other servers share the store; each
# time it waits twice as long. Without that it would miss what another server wrote while the waiter
# began, or just before that server was killed.
_SEARCH_AGAIN_S: Final = 0.5


class Subject(NamedTuple):
    """Which records a waiter receives: of one kind, and of a service, of all, or of an inbox."""

    type: EventType
    service_id: int | None = None
    inbox: str | None = None


class Awaited(NamedTuple):
    """Which records a waiter waits for, and how many.

    id_field: the field with the id of a record.
    field: an attribute of records that never changes, and the value that matching ones have.
    enough: how many must match.
    """

    subject: Subject
    id_field: str
    accepts: Callable[[Shown], bool]
    field: tuple[str, object] | None = None
    enough: int = 1


class WaitResult(NamedTuple):
    """The result of a wait.

    records: the newest ones that match; None if too few matched in time.
    matching: how many match.
    """

    records: Sequence[Shown] | None
    matching: int


class Waiter:
    """Keeps the ids of the matching records that it knows of.

    must_search: it has enough of them, or many records have changed.
    wake: set when `must_search` becomes true, and whenever the clock is set.
    """

    def __init__(self, wanted: Awaited) -> None:
        self.wanted = wanted
        self.wake = asyncio.Event()
        self.must_search = True
        self._ids: set[str] = set()
        # Records that were written since the search began, and whether they match.
        self._meanwhile: dict[str, bool] | None = None

    @property
    def count(self) -> int:
        """How many records match."""
        return len(self._ids)

    def receive(self, record: Shown) -> None:
        """Note a record that was added or replaced."""
        record_id = str(record[self.wanted.id_field])
        accepted = self.wanted.accepts(record)
        if self._meanwhile is not None:
            self._meanwhile[record_id] = accepted
        else:
            self._note(record_id, accepted=accepted)

    def search_again(self) -> None:
        """Search again: there are enough records, or many have changed."""
        self.must_search = True
        self.wake.set()

    def search_begins(self) -> None:
        """Note that a search begins: it may miss records that are received from now on."""
        self.must_search = False
        self._meanwhile = {}

    def search_ended(self, found: Sequence[Shown]) -> None:
        """Note the result of the search; records that were received meanwhile are newer."""
        self._ids = {str(record[self.wanted.id_field]) for record in found}
        meanwhile, self._meanwhile = self._meanwhile or {}, None
        for record_id, accepted in meanwhile.items():
            self._note(record_id, accepted=accepted)

    def _note(self, record_id: str, *, accepted: bool) -> None:
        if not accepted:
            self._ids.discard(record_id)
            return
        self._ids.add(record_id)
        if len(self._ids) >= self.wanted.enough:
            self.search_again()


class _Index:
    """The waiters of a subject, by the field and value that they wait for.

    So a record that none of them waits for costs the same with one waiter as with many.
    """

    def __init__(self) -> None:
        self._by_field: dict[str | None, dict[object, set[Waiter]]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_field)

    def add(self, waiter: Waiter) -> None:
        name, value = _place_of(waiter)
        self._by_field.setdefault(name, {}).setdefault(value, set()).add(waiter)

    def remove(self, waiter: Waiter) -> None:
        name, value = _place_of(waiter)
        by_value = self._by_field[name]
        by_value[value].discard(waiter)
        if not by_value[value]:
            del by_value[value]
        if not by_value:
            del self._by_field[name]

    def concerned(self, record: object) -> list[Waiter]:
        """The waiters that may wait for this record; all of them for None, an unknown record."""
        found: list[Waiter] = []
        for name, by_value in self._by_field.items():
            if name is None or record is None:
                found += (each for waiters in by_value.values() for each in waiters)
            else:
                found += by_value.get(getattr(record, name), ())
        return found


def _place_of(waiter: Waiter) -> tuple[str | None, object]:
    field = waiter.wanted.field
    return field if field is not None and isinstance(field[1], str | int) else (None, None)


class Waiters:
    """All waiters of a server.

    waiting: the waiters, by what they receive; empty while there is none.
    """

    def __init__(self, clock: Clock, relay: Relay | None = None) -> None:
        self._clock = clock
        self._relay = relay
        self.waiting: dict[Subject, _Index] = defaultdict(_Index)
        self._stop_listening: Callable[[], None] | None = None

    def receive(self, events: Sequence[Event]) -> None:
        """Pass on events that were committed, here or on another server; never waits."""
        for event in events:
            if event.type in _MANY_CHANGED:
                self._search_again(event.service_id)
                continue
            # A set, because for a record without a service the first two subjects are equal.
            subjects = {
                Subject(event.type, event.service_id, event.inbox),
                Subject(event.type, None, event.inbox),
            }
            indexes = (self.waiting[each] for each in subjects if each in self.waiting)
            concerned = [each for index in indexes for each in index.concerned(event.record)]
            if concerned:
                record = cast("Shown", event.show())
                for waiter in concerned:
                    waiter.receive(record)

    async def until(
        self,
        wanted: Awaited,
        search: Callable[[], Awaitable[Sequence[Shown]]],
        timeout_s: float,
    ) -> WaitResult:
        """Return as soon as enough records match, or after `timeout_s` of real time.

        search: finds the newest matching records in the store, at most `wanted.enough`.
        """
        now = self._clock.monotonic
        until = now() + timeout_s
        pause = math.inf if self._relay is None else _SEARCH_AGAIN_S
        with self._registered(Waiter(wanted)) as waiter:
            while True:
                waiter.search_begins()
                found = await search()
                if len(found) >= wanted.enough:
                    return WaitResult(found, len(found))
                waiter.search_ended(found)
                next_search = min(until, now() + pause)
                while not waiter.must_search and (left := next_search - now()) > 0:
                    waiter.wake.clear()
                    await self._clock.wait_at_most(waiter.wake, left)
                if not waiter.must_search and next_search == until:
                    return WaitResult(None, waiter.count)
                pause *= 2

    @contextmanager
    def _registered(self, waiter: Waiter) -> Iterator[Waiter]:
        if not self.waiting and self._relay is not None:
            self._stop_listening = self._relay.listen(self.receive)
        subject = waiter.wanted.subject
        self.waiting[subject].add(waiter)
        try:
            yield waiter
        finally:
            self.waiting[subject].remove(waiter)
            if not self.waiting[subject]:
                del self.waiting[subject]
            if not self.waiting and self._stop_listening is not None:
                self._stop_listening()
                self._stop_listening = None

    def _search_again(self, service_id: int | None) -> None:
        for subject, waiting in self.waiting.items():
            if None in {service_id, subject.service_id} or subject.service_id == service_id:
                for waiter in waiting.concerned(None):
                    waiter.search_again()


T = TypeVar("T")


# Real time, in seconds, after which `ChangeWaiter` looks again even without a write here: another
# server may have written.
_LOOK_AGAIN_S: Final = 0.5


class ChangeWaiter:
    """Waits for tests in this process: looks again after each write to the store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def until(self, look: Callable[[], Awaitable[T | None]], timeout_s: float) -> T | None:
        """The first result of `look` that is not None; None after `timeout_s` of real time."""
        until = self._clock.monotonic() + timeout_s
        wake = asyncio.Event()
        unwatch = self._store.watch(wake.set)
        try:
            while True:
                wake.clear()
                found = await look()
                left = until - self._clock.monotonic()
                if found is not None or left <= 0:
                    return found
                await self._clock.wait_at_most(wake, min(left, _LOOK_AGAIN_S))
        finally:
            unwatch()
