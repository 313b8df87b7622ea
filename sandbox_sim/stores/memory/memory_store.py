"""The memory store: plain dicts and the status cache, lost when the process ends.

Writes happen at once and note how to undo them, so a unit of work that raises changes nothing. No
method suspends, so units never overlap.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import Final, TypeVar

from sandbox_sim.ports import Clock, Topic, Unit
from sandbox_sim.ports.clock import ClockState
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import KEPT_CALLBACKS, CallbackRecord
from sandbox_sim.records.events import EventType, StoredChange
from sandbox_sim.records.inbox import InboxMessage
from sandbox_sim.records.journal import KEPT_REQUESTS, NO_SERVICE, JournalEntry
from sandbox_sim.records.listing import Listing, merged_page
from sandbox_sim.records.messages import HistoryQuery, Message
from sandbox_sim.records.overrides import DeletedRule, UserRule
from sandbox_sim.records.transactions import KEPT_IN_MEMORY, CardPage, TransactionRecord
from sandbox_sim.stores.change_notifier import ChangeNotifier
from sandbox_sim.stores.memory.attempts_and_ledger import MemoryLedger, MemoryNetworkRecords
from sandbox_sim.stores.memory.snapshots import MemorySnapshots
from sandbox_sim.stores.memory.state import NumberedEntry, Service
from sandbox_sim.values.clients import ServiceMode

T = TypeVar("T")

R = TypeVar("R", CallbackRecord, Message)


# Constants, because Python 3.11 takes half a microsecond to find a member of an enum.
_SANDBOX: Final = ServiceMode.SANDBOX

_LIVE: Final = ServiceMode.PRODUCTION


# Nothing else changes while a callback is being sent.
_sent_parts: Final = attrgetter("attempts", "url", "target")

_INITIATION_ORDER: Final = attrgetter("initiated_at", "network_transaction_id")


class MemoryStore(ChangeNotifier):
    """The `Store` of the fixtures, and of `serve --store memory:`.

    keep_transactions: how many of each service are kept, beside those that are never dropped.
    """

    joined_others = False

    def __init__(self, clock: Clock, keep_transactions: int = KEPT_IN_MEMORY) -> None:
        super().__init__()
        self._unit = _MemoryUnit(clock, keep_transactions)

    async def open(self) -> None:
        """Does nothing."""

    async def close(self) -> None:
        """Does nothing; the state is lost with the process."""

    async def run(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        """Run `work`; if it raises, undo its writes and raise the same exception."""
        unit = self._unit
        unit.earliest_due = None
        unit.announced = ()
        changes: list[StoredChange] | None = [] if any(self._readers) else None
        unit.changes = changes
        try:
            result = await work(unit)
        except BaseException:
            for undo in reversed(unit.undo):
                undo()
            unit.undo.clear()
            raise
        if unit.earliest_due is not None:
            self._job_listener(unit.earliest_due)
        wrote = bool(unit.undo)
        unit.undo.clear()  # not later: after a reset it holds the whole old state
        if wrote:
            for listener in self._watchers:
                listener()
        if unit.announced:
            await self._notify_topics(unit.announced)
        if changes:
            self._on_changes(changes)
        return result


class _MemoryUnit(MemoryLedger, MemorySnapshots, MemoryNetworkRecords):
    """The only unit of work; each `run` uses it again."""

    async def transaction(
        self, service_id: int, transaction_id: str, mode: ServiceMode = _SANDBOX
    ) -> TransactionRecord | None:
        network_id = await self.network_id_of(service_id, transaction_id, mode)
        if network_id is None:
            return None
        return await self.transaction_by_network_id(service_id, network_id, mode)

    async def network_id_of(
        self, service_id: int, transaction_id: str, mode: ServiceMode = _SANDBOX
    ) -> str | None:
        return self._service(mode, service_id).transactions.current.get(transaction_id)

    async def transaction_by_network_id(
        self, service_id: int, network_transaction_id: str, mode: ServiceMode = _SANDBOX
    ) -> TransactionRecord | None:
        records = self._service(mode, service_id).transactions.records
        return records.get(network_transaction_id)

    async def add_transaction(self, transaction: TransactionRecord) -> bool:
        payment, network_id = transaction.payment, transaction.network_transaction_id
        is_live = transaction.mode is _LIVE
        services = self._live_services if is_live else self._services
        cache = services[payment.service_id].transactions
        if is_live and payment.transaction_id in cache.current:
            return False
        cache.add(transaction)
        self.undo.append(partial(cache.records.pop, network_id, None))
        self._set(cache.current, payment.transaction_id, network_id)
        self._record_changes(EventType.TRANSACTION, transaction)
        return True

    async def save_transaction(self, transaction: TransactionRecord) -> None:
        records = self._service_of(transaction).transactions.records
        before = records[transaction.network_transaction_id]
        records[transaction.network_transaction_id] = transaction
        self.undo.append(lambda: records.__setitem__(before.network_transaction_id, before))
        self._record_changes(EventType.TRANSACTION, transaction)

    async def refunds_of(self, collection: TransactionRecord) -> Sequence[TransactionRecord]:
        records = self._service_of(collection).transactions.records.values()
        return [each for each in records if each.refund_of == collection.network_transaction_id]

    async def delete_transaction(self, transaction: TransactionRecord) -> None:
        network_id = transaction.network_transaction_id
        cache = self._service_of(transaction).transactions
        # A new dict, so that an undo keeps the order.
        records = {n: each for n, each in cache.records.items() if n != network_id}
        self._replace("records", records, cache)
        self._remove(cache.current, transaction.transaction_id)

    async def card_page(self, checkout_id: str) -> CardPage | None:
        number, found = self._card_pages.get(checkout_id, (0, None))
        return None if found is None or self._was_reset(found.service_id, number) else found

    async def add_card_page(self, checkout: CardPage) -> None:
        _ = self._services[checkout.service_id]  # creates the service before its first card page
        self._set(self._card_pages, checkout.id, (next(self._serials), checkout))

    async def callback(self, service_id: int | None, callback_id: str) -> CallbackRecord | None:
        services = self._services_of(service_id)
        found = (service.callbacks.get(callback_id) for service in services)
        return next(filter(None, found), None)

    def _service_of(self, record: TransactionRecord | CallbackRecord | Message) -> Service:
        return self._service(record.mode, record.service_id)

    async def save_callback(
        self, callback: CallbackRecord, before: CallbackRecord | None = None
    ) -> bool:
        service = self._service_of(callback)
        current = service.callbacks.get(callback.id)
        if before and current and _sent_parts(current) != _sent_parts(before):
            return False
        if current is None:
            self._set(service.numbers, callback.id, next(self._numbers))
        self._set(service.callbacks, callback.id, callback)
        self._record_changes(EventType.CALLBACK, callback)
        finished_before = current is not None and not current.state.is_waiting
        if not (callback.state.is_waiting or finished_before):
            service.finished.append(callback.id)
            self.undo.append(service.finished.pop)
            if len(service.finished) > KEPT_CALLBACKS:
                self._drop_callback(service, service.finished.popleft())
        return True

    async def services_with_held_callbacks(self) -> Sequence[int]:
        return [
            service_id
            for service_id, service in self._services.items()
            if any(callback.held for callback in service.callbacks.values())
        ]

    async def release_callbacks(self, service_id: int, callback_id: str) -> Sequence[str]:
        service = self._services[service_id]
        records, numbers = service.callbacks, service.numbers
        last = numbers.get(callback_id, 0)
        held = [each for each in records.values() if each.held and numbers[each.id] <= last]
        for callback in held:
            self._set(records, callback.id, callback._replace(held=False))
        return [callback.id for callback in held]

    def _drop_callback(self, service: Service, callback_id: str) -> None:
        """Delete the oldest finished callback; a rollback makes it the oldest again.

        A callback that is being sent again is not finished, and is queued again when it is.
        """
        dropped = service.callbacks.get(callback_id)
        if dropped is None or dropped.state.is_waiting:
            self.undo.append(lambda: service.finished.appendleft(callback_id))
            return
        self._remove(service.numbers, callback_id)
        del service.callbacks[callback_id]

        def undo() -> None:
            service.finished.appendleft(callback_id)
            newer = dict(service.callbacks)
            service.callbacks.clear()
            service.callbacks.update({callback_id: dropped, **newer})

        self.undo.append(undo)

    async def list_transactions(self, listing: Listing) -> Sequence[TransactionRecord]:
        after, limit = listing.after, listing.limit
        services = self._services_of(listing.service_id, listing.mode)
        if len(services) == 1 and (after is None or after in services[0].transactions.records):
            return list(itertools.islice(services[0].transactions.newest_first(after), limit))
        lists = [service.transactions.newest_first() for service in services]
        newest = heapq.merge(*lists, key=_INITIATION_ORDER, reverse=True)
        if after is not None:
            if not any(after in each.transactions.records for each in self._services_of(None)):
                return []
            # Network transaction ids increase, also across services and modes.
            newest = (each for each in newest if each.network_transaction_id < after)
        return list(itertools.islice(newest, limit))

    async def list_callbacks(self, listing: Listing) -> Sequence[CallbackRecord]:
        return self._page(listing, attrgetter("callbacks"), attrgetter("id"))

    async def list_messages(self, listing: Listing) -> Sequence[Message]:
        return self._page(listing, attrgetter("messages"), attrgetter("processing_id"))

    def _page(
        self,
        listing: Listing,
        records_of: Callable[[Service], dict[str, R]],
        id_of: Callable[[R], str],
    ) -> Sequence[R]:
        services = self._services_of(listing.service_id, listing.mode)
        lists = [reversed(records_of(each).values()) for each in services]
        return merged_page(lists, listing, id_of, lambda r: self._service_of(r).numbers[id_of(r)])

    async def add_entries(self, entries: Sequence[JournalEntry]) -> None:
        removed: list[tuple[Service, list[NumberedEntry]]] = []
        for entry in entries:
            service = self._service(entry.mode, entry.service_id or NO_SERVICE)
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
        self._record_changes(EventType.REQUEST, *entries)

    async def list_entries(self, listing: Listing) -> Sequence[JournalEntry]:
        services = self._services_of(listing.service_id, listing.mode)
        lists = [reversed(service.entries) for service in services]
        found = merged_page(lists, listing, lambda entry: entry[1].id, itemgetter(0))
        return [entry for _, entry in found]

    async def clear_entries(self, service_id: int | None) -> int:
        services = self._services_of(service_id, _SANDBOX)
        cleared = sum(len(service.entries) for service in services)
        for service in services:
            self._replace("entries", deque(), service)
        return cleared

    async def dropped_entries(self, service_id: int | None) -> int:
        return sum(service.dropped for service in self._services_of(service_id))

    async def add_messages(self, messages: Sequence[Message]) -> None:
        service = self._service_of(messages[0])
        added = {message.processing_id: message for message in messages}
        self._update(service.numbers, dict(zip(added, self._numbers, strict=False)))
        self._update(service.messages, added)
        self._record_changes(EventType.SMS, *messages)
        batch_id = messages[0].batch_id
        if batch_id is not None:
            self._set(service.batches, batch_id, list(added))

    async def messages(
        self, service_id: int, subject: str, mode: ServiceMode = _SANDBOX
    ) -> Sequence[Message]:
        service = self._service(mode, service_id)
        ids = service.batches.get(subject, [subject])
        return [service.messages[i] for i in ids if i in service.messages]

    async def save_messages(self, messages: Sequence[Message]) -> None:
        if messages:
            saved = {message.processing_id: message for message in messages}
            self._update(self._service_of(messages[0]).messages, saved)
            self._record_changes(EventType.SMS, *messages)

    async def history(self, query: HistoryQuery) -> tuple[Sequence[Message], int]:
        records = self._service(query.mode, query.service_id).messages
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
        self._record_changes(EventType.INBOX, (name, message))

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
        self._record_changes(EventType(rule.kind), rule)

    async def delete_user_rule(self, rule: UserRule) -> None:
        self._replace("_rules", {n: each for n, each in self._rules.items() if n != rule.id})
        self._record_changes(EventType(rule.kind), DeletedRule(rule.id, rule.match.service_id))

    async def announce(self, topic: Topic) -> None:
        self.announced = (*self.announced, topic)

    async def reserve(self, first: int, count: int) -> int:
        begin = first if self._first_free is None else self._first_free
        self._replace("_first_free", begin + count)
        return begin

    async def clock(self) -> ClockState | None:
        return self._clock_state

    async def save_clock(self, state: ClockState) -> None:
        self._replace("_clock_state", state)
        self._record_changes(EventType.CLOCK, state)

    async def behaviour(self) -> Behaviour | None:
        return self._behaviour

    async def save_behaviour(self, behaviour: Behaviour | None) -> None:
        self._replace("_behaviour", behaviour)
        self._record_changes(EventType.CONFIG, behaviour or Behaviour())

    async def restored(self) -> bool:
        return False
