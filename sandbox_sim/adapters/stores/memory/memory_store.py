"""The memory store: plain dicts and the status cache, lost when the process ends.

Writes happen at once and note how to undo them, so a unit of work that raises changes nothing. No
method suspends, so units never overlap.
"""

import itertools
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import Final, TypeVar

from sandbox_sim.adapters.stores.change_notifier import ChangeNotifier
from sandbox_sim.adapters.stores.memory.ledger import MemoryLedger
from sandbox_sim.adapters.stores.memory.live import MemoryLive
from sandbox_sim.adapters.stores.memory.snapshots import MemorySnapshots
from sandbox_sim.adapters.stores.memory.state import PlacedEntry, Service
from sandbox_sim.domain.callbacks.callbacks import KEPT_CALLBACKS, Callback
from sandbox_sim.domain.callbacks.inbox import InboxMessage
from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.control.clock import ClockState
from sandbox_sim.domain.control.journal import KEPT_REQUESTS, NO_SERVICE, Entry
from sandbox_sim.domain.control.listing import Listing, merged_page
from sandbox_sim.domain.control.user_rules import UserRule
from sandbox_sim.domain.payments.card_page import CardPage
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.domain.sms.sms_messages import HistoryQuery, Message
from sandbox_sim.gateway.ports import Clock, Topic, Unit

T = TypeVar("T")

# A constant, because Python 3.11 takes half a microsecond to find a member of an enum.
_LIVE: Final = ServiceMode.PRODUCTION


class MemoryStore(ChangeNotifier):
    """The `Store` of the fixtures, and of `serve --store memory:`."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._unit = _MemoryUnit(clock)

    async def open(self) -> None:
        """Does nothing."""

    async def close(self) -> None:
        """Does nothing; the state is lost with the process."""

    async def run(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        """Run `work`; if it raises, undo its writes and raise the same exception."""
        unit = self._unit
        unit.earliest_added = None
        unit.announced = ()
        try:
            result = await work(unit)
        except BaseException:
            for undo in reversed(unit.undo):
                undo()
            unit.undo.clear()
            raise
        if unit.earliest_added is not None and self._job_listener is not None:
            self._job_listener(unit.earliest_added)
        wrote = bool(unit.undo)
        unit.undo.clear()  # not later: after a reset it holds the whole old state
        if wrote:
            for notice in self._watchers:
                notice()
        if unit.announced:
            await self._topic_notifier.notify(unit.announced)
        return result


class _MemoryUnit(MemoryLedger, MemorySnapshots, MemoryLive):
    """The only unit of work; each `run` uses it again."""

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
        self._set(cache.current, payment.transaction_id, network_id)

    async def save_transaction(self, transaction: Transaction) -> None:
        records = self._services[transaction.service_id].transactions.records
        before = records[transaction.network_transaction_id]
        records[transaction.network_transaction_id] = transaction
        self.undo.append(lambda: records.__setitem__(before.network_transaction_id, before))

    async def card_page(self, checkout_id: str) -> CardPage | None:
        number, found = self._card_pages.get(checkout_id, (0, None))
        return None if found is None or self._was_reset(found.service_id, number) else found

    async def add_card_page(self, checkout: CardPage) -> None:
        _ = self._services[checkout.service_id]  # creates the service before its first card page
        self._set(self._card_pages, checkout.id, (next(self._serials), checkout))

    async def callback(self, service_id: int | None, callback_id: str) -> Callback | None:
        services = self._both_modes(service_id)
        found = (service.callbacks.get(callback_id) for service in services)
        return next(filter(None, found), None)

    def _both_modes(self, service_id: int | None) -> Sequence[Service]:
        """What a service, or each of all (None), has in either mode."""
        live = self._live_services
        if service_id is None:
            return [*self._services.values(), *live.values()]
        return [*self._services_of(service_id), *([live[service_id]] if service_id in live else [])]

    def _in_mode(self, mode: ServiceMode | None, service_id: int) -> Service:
        return (self._live_services if mode is _LIVE else self._services)[service_id]

    def _of(self, record: Callback | Message) -> Service:
        return self._in_mode(record.mode, record.service_id)

    async def save_callback(self, callback: Callback) -> None:
        service = self._of(callback)
        before = service.callbacks.get(callback.id)
        if before is None:
            self._set(service.places, callback.id, next(self._numbers))
        self._set(service.callbacks, callback.id, callback)
        finished_before = before is not None and not before.state.is_waiting
        if callback.state.is_waiting or finished_before:
            return
        service.finished.append(callback.id)
        self.undo.append(service.finished.pop)
        if len(service.finished) > KEPT_CALLBACKS:
            self._forget(service, service.finished.popleft())

    async def services_with_held_callbacks(self) -> Sequence[int]:
        return [
            service_id
            for service_id, service in self._services.items()
            if any(callback.held for callback in service.callbacks.values())
        ]

    async def release_callbacks(self, service_id: int, callback_id: str) -> Sequence[str]:
        service = self._services[service_id]
        records, places = service.callbacks, service.places
        last = places.get(callback_id, 0)
        held = [each for each in records.values() if each.held and places[each.id] <= last]
        for callback in held:
            self._set(records, callback.id, callback._replace(held=False))
        return [callback.id for callback in held]

    def _forget(self, service: Service, callback_id: str) -> None:
        """Delete the oldest finished callback; a rollback makes it the oldest again.

        A callback that is being sent again is not finished, and is queued again when it is.
        """
        forgotten = service.callbacks.get(callback_id)
        if forgotten is None or forgotten.state.is_waiting:
            self.undo.append(lambda: service.finished.appendleft(callback_id))
            return
        self._remove(service.places, callback_id)
        del service.callbacks[callback_id]

        def undo() -> None:
            service.finished.appendleft(callback_id)
            newer = dict(service.callbacks)
            service.callbacks.clear()
            service.callbacks.update({callback_id: forgotten, **newer})

        self.undo.append(undo)

    async def list_transactions(self, listing: Listing) -> Sequence[Transaction]:
        services = self._services_of(listing.service_id)
        if listing.after in self._live.transactions:  # one of mode P; ids increase
            return await self._transactions_before(listing)
        if len(services) == 1:
            newest = services[0].transactions.newest_first(listing.after)
            return list(itertools.islice(newest, listing.limit))
        lists = [service.transactions.newest_first() for service in services]
        # Network transaction ids increase.
        sort_key = attrgetter("initiated_at", "network_transaction_id")
        return merged_page(lists, listing, attrgetter("network_transaction_id"), sort_key)

    async def _transactions_before(self, listing: Listing) -> Sequence[Transaction]:
        every = await self.list_transactions(listing._replace(after=None, limit=sys.maxsize))
        older = (each for each in every if each.network_transaction_id < str(listing.after))
        return list(itertools.islice(older, listing.limit))

    async def list_callbacks(self, listing: Listing) -> Sequence[Callback]:
        services = self._both_modes(listing.service_id)
        lists = [reversed(service.callbacks.values()) for service in services]
        return merged_page(lists, listing, attrgetter("id"), lambda c: self._of(c).places[c.id])

    async def list_messages(self, listing: Listing) -> Sequence[Message]:
        lists = [
            reversed(service.messages.values()) for service in self._both_modes(listing.service_id)
        ]
        return merged_page(
            lists,
            listing,
            attrgetter("processing_id"),
            lambda message: self._of(message).places[message.processing_id],
        )

    async def add_entries(self, entries: Sequence[Entry]) -> None:
        removed: list[tuple[Service, list[PlacedEntry]]] = []
        for entry in entries:
            service = self._in_mode(entry.mode, entry.service_id or NO_SERVICE)
            dropped = [service.entries.popleft()] if len(service.entries) >= KEPT_REQUESTS else []
            service.dropped += len(dropped)
            service.entries.append((next(self._numbers), entry))
            removed.append((service, dropped))

        def undo() -> None:
            for service, dropped in reversed(removed):
                service.entries.pop()
                service.entries.extendleft(dropped)
                service.dropped -= len(dropped)

        self.undo.append(undo)

    async def list_entries(self, listing: Listing) -> Sequence[Entry]:
        lists = [reversed(service.entries) for service in self._both_modes(listing.service_id)]
        found = merged_page(lists, listing, lambda place: place[1].id, itemgetter(0))
        return [entry for _, entry in found]

    async def clear_entries(self, service_id: int | None) -> int:
        services = self._services_of(service_id)
        cleared = sum(len(service.entries) for service in services)
        for service in services:
            self.undo.append(partial(setattr, service, "entries", service.entries))
            service.entries = deque()
        return cleared

    async def dropped_entries(self, service_id: int | None) -> int:
        return sum(service.dropped for service in self._both_modes(service_id))

    async def add_messages(self, messages: Sequence[Message]) -> None:
        service = self._of(messages[0])
        for message in messages:
            self._set(service.places, message.processing_id, next(self._numbers))
            self._set(service.messages, message.processing_id, message)
        batch_id = messages[0].batch_id
        if batch_id is not None:
            self._set(service.batches, batch_id, [message.processing_id for message in messages])

    async def messages(
        self, service_id: int, subject: str, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> Sequence[Message]:
        service = self._in_mode(mode, service_id)
        ids = service.batches.get(subject, [subject])
        return [service.messages[i] for i in ids if i in service.messages]

    async def save_messages(self, messages: Sequence[Message]) -> None:
        for message in messages:
            records = self._of(message).messages
            self._set(records, message.processing_id, message)

    async def history(self, query: HistoryQuery) -> tuple[Sequence[Message], int]:
        records = self._in_mode(query.mode, query.service_id).messages
        first = query.offset
        if not query.filtered:
            if first >= len(records):
                return [], len(records)
            page = itertools.islice(reversed(records.values()), first, first + query.limit)
            return list(page), len(records)
        found = [message for message in reversed(records.values()) if query.matches(message)]
        return found[first : first + query.limit], len(found)

    async def add_inbox_message(self, name: str, message: InboxMessage) -> None:
        self.undo.append(self._inboxes.add(name, next(self._numbers), message))

    async def inbox_messages(self, name: str, listing: Listing) -> Sequence[InboxMessage]:
        newest_first = self._inboxes.newest_first(name)
        return merged_page([newest_first], listing, attrgetter("id"), attrgetter("at"))

    async def clear_inbox(self, name: str) -> int:
        cleared, undo = self._inboxes.clear(name)
        if cleared:
            self.undo.append(undo)
        return cleared

    async def user_rules(self) -> Sequence[UserRule]:
        return list(reversed(self._rules.values()))

    async def user_rule(self, rule_id: str) -> UserRule | None:
        return self._rules.get(rule_id)

    async def save_user_rule(self, rule: UserRule) -> None:
        self._set(self._rules, rule.id, rule)

    async def delete_user_rule(self, rule: UserRule) -> None:
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
