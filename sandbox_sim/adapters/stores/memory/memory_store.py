"""State in memory: plain dicts and the status cache; gone when the process ends.

Writes happen at once and note how to take them back, so a unit of work that raises leaves nothing
behind. Nothing here suspends, so units never mix.
"""

import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import TypeVar

from sandbox_sim.adapters.stores.change_notifier import ChangeNotifier
from sandbox_sim.adapters.stores.memory.ledger import MemoryLedger
from sandbox_sim.adapters.stores.memory.snapshots import MemorySnapshots
from sandbox_sim.adapters.stores.memory.state import PlacedEntry, Service
from sandbox_sim.domain.callbacks.callbacks import KEPT_CALLBACKS, Callback
from sandbox_sim.domain.callbacks.inbox import InboxMessage
from sandbox_sim.domain.control.clock import ClockState
from sandbox_sim.domain.control.journal import KEPT_REQUESTS, NO_SERVICE, Entry
from sandbox_sim.domain.control.listing import Listing, stretch
from sandbox_sim.domain.control.user_rules import UserRule
from sandbox_sim.domain.payments.card_page import CardPage
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.domain.sms.sms_messages import HistoryQuery, Message
from sandbox_sim.gateway.ports import Clock, Topic, Unit

T = TypeVar("T")


class MemoryStore(ChangeNotifier):
    """The `Store` of the fixtures, and of `serve --store memory:`."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._unit = _MemoryUnit(clock)

    async def open(self) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        """What was kept is gone with the process."""

    async def run(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        """Do `work`; if it raises, take back what it wrote."""
        unit = self._unit
        unit.added = None
        unit.announced = ()
        try:
            result = await work(unit)
        except BaseException:
            for take_back in reversed(unit.undo):
                take_back()
            unit.undo.clear()
            raise
        if unit.added is not None and self._notice is not None:
            self._notice(unit.added)
        wrote = bool(unit.undo)
        unit.undo.clear()  # now, for it may hold all that a reset forgot
        if wrote:
            for notice in self._watchers:
                notice()
        if unit.announced:
            await self._topic_notifier.tell(unit.announced)
        return result


class _MemoryUnit(MemoryLedger, MemorySnapshots):
    """The one unit of work."""

    async def transaction(self, service_id: int, transaction_id: str) -> Transaction | None:
        cache = self._services[service_id].transactions
        network_id = cache.current.get(transaction_id)
        found = None if network_id is None else cache.records.get(network_id)
        return None if found is None or found.expires_at <= self._clock.now() else found

    async def transaction_by_network_id(
        self, service_id: int, network_transaction_id: str
    ) -> Transaction | None:
        return self._services[service_id].transactions.find(network_transaction_id)

    async def add_transaction(self, transaction: Transaction) -> None:
        payment, network_id = transaction.payment, transaction.network_transaction_id
        cache = self._services[payment.service_id].transactions
        cache.add(transaction)
        self.undo.append(partial(cache.records.pop, network_id, None))
        self._put(cache.current, payment.transaction_id, network_id)

    async def save_transaction(self, transaction: Transaction) -> None:
        records = self._services[transaction.service_id].transactions.records
        before = records[transaction.network_transaction_id]
        records[transaction.network_transaction_id] = transaction
        self.undo.append(lambda: records.__setitem__(before.network_transaction_id, before))

    async def checkout(self, checkout_id: str) -> CardPage | None:
        number, found = self._checkouts.get(checkout_id, (0, None))
        return None if found is None or self._is_gone(found.service_id, number) else found

    async def add_card_page(self, checkout: CardPage) -> None:
        _ = self._services[checkout.service_id]  # begins before its first checkout
        self._put(self._checkouts, checkout.id, (next(self._serials), checkout))

    async def callback(self, service_id: int | None, callback_id: str) -> Callback | None:
        services = self._listed(service_id)
        found = (service.callbacks.get(callback_id) for service in services)
        return next(filter(None, found), None)

    async def save_callback(self, callback: Callback) -> None:
        service = self._services[callback.service_id]
        before = service.callbacks.get(callback.id)
        if before is None:
            self._put(service.places, callback.id, next(self._numbers))
        self._put(service.callbacks, callback.id, callback)
        finished_before = before is not None and not before.state.is_waiting
        if callback.state.is_waiting or finished_before:
            return
        service.finished.append(callback.id)
        self.undo.append(service.finished.pop)
        if len(service.finished) > KEPT_CALLBACKS:
            self._forget(service, service.finished.popleft())

    async def services_held(self) -> Sequence[int]:
        return [
            service_id
            for service_id, service in self._services.items()
            if any(callback.held for callback in service.callbacks.values())
        ]

    async def let_go(self, service_id: int, callback_id: str) -> Sequence[str]:
        service = self._services[service_id]
        kept, places = service.callbacks, service.places
        last = places.get(callback_id, 0)
        held = [each for each in kept.values() if each.held and places[each.id] <= last]
        for callback in held:
            self._put(kept, callback.id, callback._replace(held=False))
        return [callback.id for callback in held]

    def _forget(self, service: Service, callback_id: str) -> None:
        """Let the oldest finished callback go; taken back, it is the oldest again.

        One that is sent once more is not finished, and comes here again when it is.
        """
        forgotten = service.callbacks.get(callback_id)
        if forgotten is None or forgotten.state.is_waiting:
            self.undo.append(lambda: service.finished.appendleft(callback_id))
            return
        self._take(service.places, callback_id)
        del service.callbacks[callback_id]

        def take_back() -> None:
            service.finished.appendleft(callback_id)
            newer = dict(service.callbacks)
            service.callbacks.clear()
            service.callbacks.update({callback_id: forgotten, **newer})

        self.undo.append(take_back)

    async def list_transactions(self, listing: Listing) -> Sequence[Transaction]:
        services = self._listed(listing.service_id)
        if len(services) == 1:
            newest = services[0].transactions.newest_first(listing.after)
            return list(itertools.islice(newest, listing.limit))
        lists = [service.transactions.newest_first() for service in services]
        # The ids of transactions count up.
        place_of = attrgetter("initiated_at", "network_transaction_id")
        return stretch(lists, listing, attrgetter("network_transaction_id"), place_of)

    async def list_callbacks(self, listing: Listing) -> Sequence[Callback]:
        lists = [
            reversed(service.callbacks.values()) for service in self._listed(listing.service_id)
        ]
        return self._by_place(lists, listing, "id")

    async def list_messages(self, listing: Listing) -> Sequence[Message]:
        lists = [
            reversed(service.messages.values()) for service in self._listed(listing.service_id)
        ]
        return self._by_place(lists, listing, "processing_id")

    def _by_place(self, lists: Iterable[Iterable[T]], listing: Listing, name: str) -> list[T]:
        name_of, service_of = attrgetter(name), attrgetter("service_id")

        def place_of(record: T) -> int:
            return self._services[service_of(record)].places[name_of(record)]

        return stretch(lists, listing, name_of, place_of)

    async def add_entries(self, entries: Sequence[Entry]) -> None:
        pushed_out: list[tuple[Service, list[PlacedEntry]]] = []
        for entry in entries:
            service = self._services[entry.service_id or NO_SERVICE]
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
        lists = [reversed(service.entries) for service in self._listed(listing.service_id)]
        found = stretch(lists, listing, lambda place: place[1].id, itemgetter(0))
        return [entry for _, entry in found]

    async def clear_entries(self, service_id: int | None) -> int:
        services = self._listed(service_id)
        cleared = sum(len(service.entries) for service in services)
        for service in services:
            self.undo.append(partial(setattr, service, "entries", service.entries))
            service.entries = deque()
        return cleared

    async def dropped_entries(self, service_id: int | None) -> int:
        return sum(service.dropped for service in self._listed(service_id))

    async def add_messages(self, messages: Sequence[Message]) -> None:
        service = self._services[messages[0].service_id]
        for message in messages:
            self._put(service.places, message.processing_id, next(self._numbers))
            self._put(service.messages, message.processing_id, message)
        batch_id = messages[0].batch_id
        if batch_id is not None:
            self._put(service.batches, batch_id, [message.processing_id for message in messages])

    async def messages(self, service_id: int, subject: str) -> Sequence[Message]:
        service = self._services[service_id]
        ids = service.batches.get(subject, [subject])
        return [service.messages[i] for i in ids if i in service.messages]

    async def save_messages(self, messages: Sequence[Message]) -> None:
        for message in messages:
            kept = self._services[message.service_id].messages
            self._put(kept, message.processing_id, message)

    async def history(self, query: HistoryQuery) -> tuple[Sequence[Message], int]:
        kept = self._services[query.service_id].messages
        first = query.first
        if not query.filtered:
            if first >= len(kept):
                return [], len(kept)
            page = itertools.islice(reversed(kept.values()), first, first + query.limit)
            return list(page), len(kept)
        found = [message for message in reversed(kept.values()) if query.admits(message)]
        return found[first : first + query.limit], len(found)

    async def add_inbox_message(self, name: str, message: InboxMessage) -> None:
        self.undo.append(self._inboxes.add(name, next(self._numbers), message))

    async def inbox_messages(self, name: str, listing: Listing) -> Sequence[InboxMessage]:
        newest_first = self._inboxes.newest_first(name)
        return stretch([newest_first], listing, attrgetter("id"), attrgetter("at"))

    async def clear_inbox(self, name: str) -> int:
        cleared, undo = self._inboxes.clear(name)
        if cleared:
            self.undo.append(undo)
        return cleared

    async def rules(self) -> Sequence[UserRule]:
        return list(reversed(self._rules.values()))

    async def rule(self, rule_id: str) -> UserRule | None:
        return self._rules.get(rule_id)

    async def save_rule(self, rule: UserRule) -> None:
        self._put(self._rules, rule.id, rule)

    async def delete_rule(self, rule: UserRule) -> None:
        self.undo.append(partial(setattr, self, "_rules", self._rules))
        self._rules = {n: each for n, each in self._rules.items() if n != rule.id}

    async def announce(self, topic: Topic) -> None:
        self.announced = (*self.announced, topic)

    async def reserve(self, first: int, count: int) -> int:
        begin = first if self._first_free is None else self._first_free
        self.undo.append(partial(setattr, self, "_first_free", self._first_free))
        self._first_free = begin + count
        return begin

    async def clock(self) -> ClockState | None:
        return self._clock_state

    async def save_clock(self, state: ClockState) -> None:
        self.undo.append(partial(setattr, self, "_clock_state", self._clock_state))
        self._clock_state = state
