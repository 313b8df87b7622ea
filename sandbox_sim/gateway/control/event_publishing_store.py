"""A store that publishes an event for each thing that was written, once it is committed.

The events go to the live feed and to requests that wait for records. While there is neither a
reader nor a waiter, units of work run on the wrapped store as they are, and cost nothing more.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar, TypeVarTuple, cast

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


class _Record(Protocol):
    @property
    def service_id(self) -> int | None: ...


T = TypeVar("T")
Record = TypeVar("Record", bound=_Record)
Arguments = TypeVarTuple("Arguments")

# The events of one call of a method of `Unit`, from its result and its arguments.
Events = Callable[[Any, tuple[Any, ...]], Iterable[Event]]


def events_of_units(clock: Clock) -> Mapping[str, Events]:
    """The methods of `Unit` that are published, by name, with the events that they make.

    The methods are named as attributes of `Unit`, so mypy and the start of the server refuse one
    that is renamed or gone, and mypy one whose arguments have changed.
    """
    return dict(
        (
            _by_arguments(Unit.add_transaction, _one(EventType.TRANSACTION, transactions.shown)),
            _by_arguments(Unit.save_transaction, _one(EventType.TRANSACTION, transactions.shown)),
            (Unit.add_live_transaction.__name__, _live_transaction_added),
            _by_arguments(
                Unit.save_live_transaction, _one(EventType.TRANSACTION, transactions.shown)
            ),
            _by_arguments(Unit.save_callback, _one(EventType.CALLBACK, callbacks.shown)),
            _by_arguments(Unit.add_messages, _each(EventType.SMS, sms_messages.shown)),
            _by_arguments(Unit.save_messages, _each(EventType.SMS, sms_messages.shown)),
            _by_arguments(Unit.add_entries, _each(EventType.REQUEST, journal.shown)),
            _by_arguments(Unit.post, _one(EventType.LEDGER, ledger.shown)),
            _by_arguments(Unit.add_inbox_message, _delivery),
            _by_arguments(Unit.save_clock, partial(_clock, clock)),
            _by_arguments(Unit.save_user_rule, _rule),
            _by_arguments(Unit.delete_user_rule, _rule_deleted),
            _by_arguments(Unit.reset, _reset),
            _by_result(Unit.restore_snapshot, _restored),
        )
    )


def _by_arguments(
    method: Callable[[Any, *Arguments], Awaitable[object]],
    events: Callable[[*Arguments], Iterable[Event]],
) -> tuple[str, Events]:
    """A method whose arguments say what happened."""
    return method.__name__, lambda _result, arguments: events(*arguments)


def _by_result(
    method: Callable[..., Awaitable[T]], events: Callable[[T], Iterable[Event]]
) -> tuple[str, Events]:
    """A method whose result says what happened."""
    return method.__name__, lambda result, _arguments: events(result)


def _each(
    kind: EventType, shown: Callable[[Record], object]
) -> Callable[[Iterable[Record]], Iterable[Event]]:
    def events(records: Iterable[Record]) -> Iterable[Event]:
        return [
            Event(kind, record.service_id, partial(shown, record), record=record)
            for record in records
        ]

    return events


def _one(kind: EventType, shown: Callable[[Record], object]) -> Callable[[Record], Iterable[Event]]:
    events = _each(kind, shown)
    return lambda record: events([record])


def _live_transaction_added(added: Any, arguments: tuple[Any, ...]) -> Iterable[Event]:
    """None where the service has the `transaction_id`, because nothing was added."""
    show = _one(EventType.TRANSACTION, transactions.shown)
    return show(arguments[0]) if added else ()


def _delivery(name: str, message: InboxMessage) -> Iterable[Event]:
    """None for the inbox without a name: `readyz` writes there to try the store."""
    if name:
        show = partial(_shown_delivery, name, message)
        yield Event(EventType.INBOX, None, show, inbox=name, record=message)


def _shown_delivery(name: str, message: InboxMessage) -> dict[str, object]:
    return {"name": name, **inbox.shown(message)}


def _rule(rule: UserRule) -> Iterable[Event]:
    yield Event(EventType(rule.kind), rule.match.service_id, partial(user_rules.shown, rule))


def _rule_deleted(rule: UserRule) -> Iterable[Event]:
    deleted = {"id": rule.id, "deleted": True}
    yield Event(EventType(rule.kind), rule.match.service_id, lambda: deleted)


def _clock(clock: Clock, state: ClockState) -> Iterable[Event]:
    """None for a state that is saved before the clock gets there: `advance` saves its target."""
    if state == clock.state:
        yield Event(EventType.CLOCK, None, partial(dict, clock_shown(clock)))


def _reset(service_id: int | None) -> Iterable[Event]:
    yield Event(EventType.RESET, service_id, lambda: {"service_id": service_id})


def _restored(snapshot: Snapshot | None) -> Iterable[Event]:
    if snapshot is not None:
        show = partial(snapshots.shown, snapshot)
        yield Event(EventType.RESTORE, snapshot.service_id, show)


class EventPublishingStore:
    """A `Store` around another one, which does all the work."""

    def __init__(
        self, store: Store, feed: Feed, clock: Clock, waiters: Waiters | None = None
    ) -> None:
        self._store = store
        self._feed = feed
        self._waiters = Waiters(clock) if waiters is None else waiters
        self._events_of = events_of_units(clock)

    async def open(self) -> None:
        """As `Store.open`."""
        await self._store.open()

    async def close(self) -> None:
        """As `Store.close`."""
        await self._store.close()

    def run(self, work: Callable[[Unit], Awaitable[T]]) -> Coroutine[Any, Any, T]:
        """As `Store.run`; what the unit wrote is published after its commit."""
        if self._waiters.waiting or self._feed.recording:
            return self._run_and_publish(work)
        return self._store.run(work)

    def watch(self, notice: Callable[[], None]) -> Callable[[], None]:
        """As `Store.watch`."""
        return self._store.watch(notice)

    def watch_jobs(self, notice: Callable[[datetime], None]) -> None:
        """As `Store.watch_jobs`."""
        self._store.watch_jobs(notice)

    def watch_topic(self, topic: Topic, notice: Callable[[], Awaitable[None]]) -> None:
        """As `Store.watch_topic`."""
        self._store.watch_topic(topic, notice)

    async def _run_and_publish(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        events: list[Event] = []

        async def recording(unit: Unit) -> T:
            events.clear()  # the store may run the work again with a new unit
            recorder = _EventRecordingUnit(unit, events, self._events_of)
            return await work(cast("Unit", recorder))

        result = await self._store.run(recording)
        if events and self._waiters.waiting:
            self._waiters.receive(events)
        if events and self._feed.recording:
            self._feed.publish(events)
        return result


class _EventRecordingUnit:
    """A unit that collects the events of what is written through it."""

    def __init__(self, unit: Unit, events: list[Event], events_of: Mapping[str, Events]) -> None:
        self._unit = unit
        self._events = events
        self._events_of = events_of

    def __getattr__(self, name: str) -> object:
        method = getattr(self._unit, name)
        events = self._events_of.get(name)
        if events is None:
            return method

        async def recorded(*arguments: object) -> object:
            result = await method(*arguments)
            self._events.extend(events(result, arguments))
            return result

        return recorded
