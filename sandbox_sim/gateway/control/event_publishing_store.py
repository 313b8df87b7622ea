"""The store, with what is written told to the live feed and to waiters once it is committed."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar, cast

from sandbox_sim.domain import ledger
from sandbox_sim.domain.callbacks import callbacks, inbox
from sandbox_sim.domain.callbacks.inbox import InboxMessage
from sandbox_sim.domain.control import journal, snapshots, user_rules
from sandbox_sim.domain.control.clock import ClockState
from sandbox_sim.domain.control.events import Event, EventType
from sandbox_sim.domain.control.snapshots import Snapshot
from sandbox_sim.domain.control.user_rules import UserRule
from sandbox_sim.domain.payments import transactions
from sandbox_sim.domain.sms import sms_messages
from sandbox_sim.gateway.control.clock_view import shown as clock_shown
from sandbox_sim.gateway.control.event_feed import Feed
from sandbox_sim.gateway.control.wait_for_records import Waiters
from sandbox_sim.gateway.ports import Clock, Store, Topic, Unit

T = TypeVar("T")

# What to tell of a call of a method of `Unit`, from its arguments.
Events = Callable[..., Iterable[Event]]


def events_of_units(clock: Clock) -> Mapping[str, Events]:
    """The methods of `Unit` that are told of."""
    return {
        "add_transaction": _one(EventType.TRANSACTION, transactions.shown),
        "save_transaction": _one(EventType.TRANSACTION, transactions.shown),
        "save_callback": _one(EventType.CALLBACK, callbacks.shown),
        "add_messages": _each(EventType.SMS, sms_messages.shown),
        "save_messages": _each(EventType.SMS, sms_messages.shown),
        "add_entries": _each(EventType.REQUEST, journal.shown),
        "post": _one(EventType.LEDGER, ledger.shown),
        "add_inbox_message": _delivery,
        "save_clock": partial(_clock, clock),
        "save_user_rule": _rule,
        "delete_user_rule": _rule_gone,
        "reset": _reset,
    }


def _each(kind: EventType, shown: Callable[[Any], object]) -> Events:
    def events(records: Iterable[Any]) -> Sequence[Event]:
        return [
            Event(kind, record.service_id, partial(shown, record), record=record)
            for record in records
        ]

    return events


def _one(kind: EventType, shown: Callable[[Any], object]) -> Events:
    events = _each(kind, shown)
    return lambda record: events([record])


def _delivery(name: str, message: InboxMessage) -> Iterable[Event]:
    """Nothing of what `readyz` tries in the inbox that has no name."""
    if name:
        show = partial(_shown_delivery, name, message)
        yield Event(EventType.INBOX, None, show, inbox=name, record=message)


def _shown_delivery(name: str, message: InboxMessage) -> dict[str, object]:
    return {"name": name, **inbox.shown(message)}


def _rule(rule: UserRule) -> Iterable[Event]:
    yield Event(EventType(rule.kind), rule.match.service_id, partial(user_rules.shown, rule))


def _rule_gone(rule: UserRule) -> Iterable[Event]:
    gone = {"id": rule.id, "deleted": True}
    yield Event(EventType(rule.kind), rule.match.service_id, lambda: gone)


def _clock(clock: Clock, state: ClockState) -> Iterable[Event]:
    """Only where it arrived: before it moves, it is saved where it goes."""
    if state == clock.state:
        yield Event(EventType.CLOCK, None, partial(dict, clock_shown(clock)))


def _reset(service_id: int | None) -> Iterable[Event]:
    yield Event(EventType.RESET, service_id, lambda: {"service_id": service_id})


class EventPublishingStore:
    """A store like the one it is given, which does all the work."""

    def __init__(
        self, store: Store, feed: Feed, clock: Clock, waiters: Waiters | None = None
    ) -> None:
        self._store = store
        self._feed = feed
        self._waiters = Waiters(clock) if waiters is None else waiters
        self._events_of = events_of_units(clock)

    async def open(self) -> None:
        """Make it ready, or raise `StoreError`."""
        await self._store.open()

    async def close(self) -> None:
        """Finish what was asked for and let go of it."""
        await self._store.close()

    def run(self, work: Callable[[Unit], Awaitable[T]]) -> Coroutine[Any, Any, T]:
        """Do `work` atomically; while there is no reader and no waiter, nothing is noted."""
        noted = self._feed.recording or self._waiters
        return self._tell(work) if noted else self._store.run(work)

    def watch(self, notice: Callable[[], None]) -> Callable[[], None]:
        """Call `notice` whenever a unit has written something; returns what ends that."""
        return self._store.watch(notice)

    def watch_jobs(self, notice: Callable[[datetime], None]) -> None:
        """Call `notice` with its due time whenever a job was added."""
        self._store.watch_jobs(notice)

    def watch_topic(self, topic: Topic, notice: Callable[[], Awaitable[None]]) -> None:
        """Call `notice` when the topic was announced, on every server, before `run` returns."""
        self._store.watch_topic(topic, notice)

    async def _tell(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        noted: list[Event] = []

        async def noting(unit: Unit) -> T:
            noted.clear()  # it may have to be done again
            return await work(cast("Unit", _EventRecordingUnit(unit, noted, self._events_of)))

        result = await self._store.run(noting)
        if noted and self._waiters:
            self._waiters.receive(noted)
        if noted and self._feed.recording:
            self._feed.publish(noted)
        return result


class _EventRecordingUnit:
    """A unit that notes what is to be told of what is written through it."""

    def __init__(self, unit: Unit, noted: list[Event], events_of: Mapping[str, Events]) -> None:
        self._unit = unit
        self._noted = noted
        self._events_of = events_of

    async def restore_snapshot(self, name: str, now: datetime) -> Snapshot | None:
        """Whose state it is turns out only then."""
        restored = await self._unit.restore_snapshot(name, now)
        if restored is not None:
            show = partial(snapshots.shown, restored)
            self._noted.append(Event(EventType.RESTORE, restored.service_id, show))
        return restored

    def __getattr__(self, name: str) -> object:
        method = getattr(self._unit, name)
        events = self._events_of.get(name)
        if events is None:
            return method

        async def told(*args: object) -> object:
            result = await method(*args)
            self._noted.extend(events(*args))
            return result

        return told
