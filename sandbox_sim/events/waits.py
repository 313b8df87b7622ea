"""Waiting until enough records match, or until the state is as expected.

A waiter searches the store once, when it begins. From then on it receives every record of its kind
and service that is written, and keeps the ids of those that match. When it has enough of them, it
searches once more, for the answer. So a payment is compared once with each waiter of its own
service, and with no other waiter.
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
_BULK_CHANGES: Final = frozenset({EventType.RESET, EventType.RESTORE, EventType.GAP})

# Real time, in seconds, after which a waiter searches again if other servers share the store; each
# time it waits twice as long. Without that it would miss what another server wrote while the waiter
# began, or just before that server was killed.
_SEARCH_AGAIN_S: Final = 0.5


class Subject(NamedTuple):
    """Which records a waiter receives: of one kind, and of a service, of all, or of an inbox."""

    type: EventType
    service_id: int | None = None
    inbox: str | None = None


class WaitCondition(NamedTuple):
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

    ids: of those that match. must_search: it has enough of them, or many records have changed.
    wake: set when `must_search` becomes true, and whenever the clock is set.
    """

    def __init__(self, condition: WaitCondition) -> None:
        self.condition = condition
        self.wake = asyncio.Event()
        self.must_search = True
        self.ids: set[str] = set()
        # Records that were written since the search began, and whether they match.
        self._received_during_search: dict[str, bool] | None = None

    def receive(self, record: Shown) -> None:
        """Update the ids for a record that was added or replaced."""
        record_id = str(record[self.condition.id_field])
        accepted = self.condition.accepts(record)
        if self._received_during_search is not None:
            self._received_during_search[record_id] = accepted
        else:
            self._update(record_id, accepted=accepted)

    def search_again(self) -> None:
        """Search again: there are enough records, or many have changed."""
        self.must_search = True
        self.wake.set()

    def begin_search(self) -> None:
        """Note that a search begins: it may miss records that are received from now on."""
        self.must_search = False
        self._received_during_search = {}

    def end_search(self, found: Sequence[Shown]) -> None:
        """Note the result of the search; records that were received meanwhile are newer."""
        self.ids = {str(record[self.condition.id_field]) for record in found}
        received, self._received_during_search = self._received_during_search or {}, None
        for record_id, accepted in received.items():
            self._update(record_id, accepted=accepted)

    def _update(self, record_id: str, *, accepted: bool) -> None:
        if not accepted:
            self.ids.discard(record_id)
            return
        self.ids.add(record_id)
        if len(self.ids) >= self.condition.enough:
            self.search_again()


class _Index:
    """The waiters of a subject, by the field and value that they wait for.

    So a record that matches no waiter costs the same with one waiter as with many.
    """

    def __init__(self) -> None:
        self._waiters_by_field: dict[str | None, dict[object, set[Waiter]]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiters_by_field)

    def add(self, waiter: Waiter) -> None:
        field_name, value = _index_key(waiter)
        self._waiters_by_field.setdefault(field_name, {}).setdefault(value, set()).add(waiter)

    def remove(self, waiter: Waiter) -> None:
        field_name, value = _index_key(waiter)
        by_value = self._waiters_by_field[field_name]
        by_value[value].discard(waiter)
        if not by_value[value]:
            del by_value[value]
        if not by_value:
            del self._waiters_by_field[field_name]

    def candidates(self, record: object) -> list[Waiter]:
        """The waiters that may wait for this record; all of them for None, an unknown record."""
        found: list[Waiter] = []
        for field_name, by_value in self._waiters_by_field.items():
            if field_name is None or record is None:
                found += (each for waiters in by_value.values() for each in waiters)
            else:
                found += by_value.get(getattr(record, field_name), ())
        return found


def _index_key(waiter: Waiter) -> tuple[str | None, object]:
    field = waiter.condition.field
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
            if event.type in _BULK_CHANGES:
                self._search_again(event.service_id)
                continue
            # A set, because for a record without a service the first two subjects are equal.
            subjects = {
                Subject(event.type, event.service_id, event.inbox),
                Subject(event.type, None, event.inbox),
            }
            indexes = (self.waiting[each] for each in subjects if each in self.waiting)
            candidates = [each for index in indexes for each in index.candidates(event.record)]
            if candidates:
                record = cast("Shown", event.show())
                for waiter in candidates:
                    waiter.receive(record)

    async def wait_for(
        self,
        condition: WaitCondition,
        search: Callable[[], Awaitable[Sequence[Shown]]],
        timeout_s: float,
    ) -> WaitResult:
        """Return as soon as enough records match, or after `timeout_s` of real time.

        search: finds the newest matching records in the store, at most `condition.enough`.
        """
        now = self._clock.monotonic
        deadline = now() + timeout_s
        pause = math.inf if self._relay is None else _SEARCH_AGAIN_S
        with self._registered(Waiter(condition)) as waiter:
            while True:
                waiter.begin_search()
                found = await search()
                if len(found) >= condition.enough:
                    return WaitResult(found, len(found))
                waiter.end_search(found)
                next_search = min(deadline, now() + pause)
                while not waiter.must_search and (remaining_s := next_search - now()) > 0:
                    waiter.wake.clear()
                    await self._clock.wait_at_most(waiter.wake, remaining_s)
                if not waiter.must_search and next_search == deadline:
                    return WaitResult(None, len(waiter.ids))
                pause *= 2

    @contextmanager
    def _registered(self, waiter: Waiter) -> Iterator[Waiter]:
        if not self.waiting and self._relay is not None:
            self._stop_listening = self._relay.listen(self.receive)
        subject = waiter.condition.subject
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
                for waiter in waiting.candidates(None):
                    waiter.search_again()


T = TypeVar("T")


# Real time, in seconds, after which `ChangeWaiter` searches again even without a write here:
# another server may have written.
_RECHECK_S: Final = 0.5


class ChangeWaiter:
    """Waits for tests in this process: searches again after each write to the store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def wait_for(self, find: Callable[[], Awaitable[T | None]], timeout_s: float) -> T | None:
        """The first result of `find` that is not None; None after `timeout_s` of real time."""
        deadline = self._clock.monotonic() + timeout_s
        wake = asyncio.Event()
        stop_watching = self._store.watch(wake.set)
        try:
            while True:
                wake.clear()
                found = await find()
                remaining_s = deadline - self._clock.monotonic()
                if found is not None or remaining_s <= 0:
                    return found
                await self._clock.wait_at_most(wake, min(remaining_s, _RECHECK_S))
        finally:
            stop_watching()
