"""Finds, counts and waits for records of all kinds, by their fields or by any of their ids.

Records are searched by the fields that they are shown with, newest first. A search for one service
reads no record of another.

A callback has an id, the network transaction id and the `transaction_id` of its payment; a
transaction has the latter two, and the ids of its callbacks. The client chooses a `transaction_id`,
so several services may have used it, and one service more than once.

`OpenTransactions` lists what has been pending for long. Source: D39, D40.
"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sandbox_sim.control.journal import Journal
from sandbox_sim.events.waits import Shown, Subject, WaitCondition, Waiters, WaitResult
from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.records import callbacks, inbox, journal, messages, transactions
from sandbox_sim.records.events import EventType
from sandbox_sim.records.listing import (
    FieldValues,
    ImpossibleValue,
    Listing,
    UnknownAfter,
    compiled_match,
    read_match,
    shortened,
)
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.msisdn import to_international
from sandbox_sim.values.redaction import redact_document, redact_text
from sandbox_sim.values.timestamps import iso

if TYPE_CHECKING:  # serve starts faster without what only production needs
    from sandbox_sim.production.attempt_views import LiveRecordReader


# How many records one unit of work reads before other tasks run. The number doubles while a unit
# takes less than `_FAST_READ_S` of real time, and is halved if it takes longer than `_SLOW_READ_S`.
PAGE_SIZE: Final = 500

_MAX_PAGE_SIZE: Final = 16_000

_FAST_READ_S: Final = 0.004

_SLOW_READ_S: Final = 0.012


@dataclass(frozen=True, slots=True)
class RecordKind:
    """One kind of record: how a page of it is read, shown, and named.

    plural: its name in paths and answers. view: the `TypedDict` of a record in answers.
    list_page: reads a page of the records. shown: the record as the control API shows it at a time.
    id_field: the field with the id of a record.
    plain: the attributes that are shown unchanged and never change, the most selective first. By
    them a search skips most records without the cost of showing them.
    indexed: those of `plain` by which databases find records without reading others.
    values: the fields that have a fixed set of values.
    inbox: the name of the inbox, if the records are the messages of one.
    phone_field: the field with a phone number in the 233 form.
    time_field: the attribute with the time at which a record began.
    """

    type: EventType
    plural: str
    view: Any
    list_page: Callable[[Unit, Listing], Awaitable[Sequence[Any]]]
    shown: Callable[[Any, datetime], Shown]
    id_field: str
    plain: tuple[str, ...]
    indexed: tuple[str, ...] = ()
    values: Mapping[str, FieldValues] = field(default_factory=dict, hash=False)
    inbox: str | None = None
    phone_field: str | None = None
    time_field: str = "at"

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields that are shown."""
        return tuple(self.view.__annotations__)

    def parse_match(self, match: Mapping[str, object]) -> dict[str, object]:
        """The match with words replaced by values, and a phone number in the form of the records.

        Raises `ImpossibleValue` if no record can match.
        """
        parsed = read_match(self.values, match)
        if self.phone_field is not None and isinstance(number := parsed.get(self.phone_field), str):
            parsed[self.phone_field] = to_international(number)
        for name in self.plain:
            _refuse_mistyped(name, parsed.get(name))
        return parsed

    @property
    def match_schemas(self) -> Mapping[str, Mapping[str, object]]:
        """The JSON schemas of the fields for which `parse_match` refuses some values."""
        schemas = {name: {"type": ["null", _json_type(name)]} for name in self.plain}
        return schemas | {name: {"enum": [*each.matched]} for name, each in self.values.items()}


def _refuse_mistyped(name: str, value: object) -> None:
    kind, noun = _TYPES[_json_type(name)]
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise ImpossibleValue(f"{name} {shortened(value)} is not {noun}")


def _json_type(name: str) -> str:
    return "integer" if name == "service_id" else "string"


_TYPES: Final = {"integer": (int, "an integer"), "string": (str, "text")}


def timeless(shown: Callable[[Any], Shown]) -> Callable[[Any, datetime], Shown]:
    """`RecordKind.shown` of records that are shown the same at any time."""
    return lambda record, _now: shown(record)


class ShownOnce:
    """Shows each record once, however many searches look at it."""

    def __init__(self, kind: RecordKind, now: datetime) -> None:
        self._show = kind.shown
        self._now = now
        self._shown: dict[int, Shown] = {}

    def __call__(self, record: object) -> Shown:
        """The record as the control API shows it; the caller keeps the record alive."""
        shown = self._shown.get(id(record))
        if shown is None:
            shown = self._shown[id(record)] = self._show(record, self._now)
        return shown


class MatchCollector:
    """Takes records, newest first, and keeps the first `limit` that match, as they are shown."""

    def __init__(self, kind: RecordKind, match: Mapping[str, object], limit: int) -> None:
        self.found: list[Shown] = []
        self._limit = limit
        self._masked_variants = _masked_variants(match)
        match = redact_document(match)
        self._selective = selective_field(kind, match)
        self._accepts = compiled_match(match)

    @property
    def is_full(self) -> bool:
        """Whether it has found `limit` records."""
        return len(self.found) >= self._limit

    def clear(self) -> None:
        """Drop what was found, to start over."""
        self.found = []

    def take(self, records: Sequence[object], shown: ShownOnce) -> None:
        """Look at the next records."""
        candidates: Iterable[object] = records
        if self._selective is not None:
            name, value = self._selective
            candidates = [each for each in records if getattr(each, name) == value]
        if self._masked_variants:
            variants = self._masked_variants
            candidates = [e for e in candidates if getattr(e, "transaction_id", None) in variants]
        for record in candidates:
            if self.is_full:
                return
            if self._accepts(each := shown(record)):
                self.found.append(each)


def selective_field(kind: RecordKind, match: Mapping[str, object]) -> tuple[str, object] | None:
    """The attribute, with its value, that rules out most records that do not match; None if none.

    match: redacted. Records keep a `transaction_id` as it came, so a masked one rules out nothing.
    """
    transaction_id = match.get("transaction_id")
    masked = isinstance(transaction_id, str) and "*" in transaction_id
    fields = (name for name in kind.plain if not (masked and name == "transaction_id"))
    return next(((name, match[name]) for name in fields if name in match), None)


def _masked_variants(match: Mapping[str, object]) -> tuple[str, ...]:
    """The `transaction_id` of a search as it came and as it is masked; empty if both are the same.

    A search for one must not find others that are equal when they are masked.
    """
    transaction_id = match.get("transaction_id")
    masked = redact_text(transaction_id) if isinstance(transaction_id, str) else transaction_id
    return () if transaction_id == masked else (str(transaction_id), str(masked))


def next_page_size(size: int, took_s: float) -> int:
    """How many records to read next, after `size` records took `took_s` seconds of real time."""
    if took_s < _FAST_READ_S:
        return min(size * 2, _MAX_PAGE_SIZE)
    return max(size // 2, PAGE_SIZE) if took_s > _SLOW_READ_S else size


# No service has a larger number, and no database takes one.
_LARGEST_SERVICE_ID: Final = 2**63 - 1


TRANSACTIONS: Final = RecordKind(
    EventType.TRANSACTION,
    "transactions",
    transactions.TransactionView,
    lambda unit, listing: unit.list_transactions(listing),
    transactions.shown,
    "network_transaction_id",
    plain=("network_transaction_id", "refund_of", "transaction_id", "service_id"),
    indexed=("network_transaction_id", "refund_of", "transaction_id"),
    values=transactions.FIELD_VALUES,
    time_field="initiated_at",
)

CALLBACKS: Final = RecordKind(
    EventType.CALLBACK,
    "callbacks",
    callbacks.CallbackView,
    lambda unit, listing: unit.list_callbacks(listing),
    timeless(callbacks.shown),
    "id",
    plain=("id", "network_transaction_id", "transaction_id", "service_id"),
    indexed=("id",),
    values=callbacks.FIELD_VALUES,
    time_field="created_at",
)

MESSAGES: Final = RecordKind(
    EventType.SMS,
    "sms",
    messages.MessageView,
    lambda unit, listing: unit.list_messages(listing),
    timeless(messages.shown),
    "processing_id",
    plain=("processing_id", "batch_id", "customer_number", "message", "service_id"),
    indexed=("processing_id", "batch_id"),
    values=messages.FIELD_VALUES,
    phone_field="customer_number",
    time_field="created_at",
)


REQUESTS: Final = RecordKind(
    EventType.REQUEST,
    "requests",
    journal.RequestView,
    lambda unit, listing: unit.list_entries(listing),
    timeless(journal.shown),
    "id",
    plain=(
        "id",
        "transaction_id",
        "operation",
        "path",
        "response_code",
        "code",
        "rule",
        "service_id",
        "mode",
    ),
    values=journal.FIELD_VALUES,
)


def inbox_of(name: str) -> RecordKind:
    """The messages of an inbox. name: as it is kept."""
    return RecordKind(
        EventType.INBOX,
        "messages",
        inbox.InboxMessageView,
        lambda unit, listing: unit.inbox_messages(name, listing._replace(service_id=None)),
        timeless(inbox.shown),
        "id",
        plain=("id", "method", "signature"),
        values=inbox.FIELD_VALUES,
        inbox=name,
    )


class RecordPage(NamedTuple):
    """A page of records as they are shown.

    next: the id after which the next page begins; None at the end.
    """

    records: Sequence[Shown]
    next: str | None


class RecordSearch:
    """Searches the records of a store."""

    def __init__(self, store: Store, journal: Journal, waiters: Waiters, clock: Clock) -> None:
        self._store = store
        self._journal = journal
        self._waiters = waiters
        self._clock = clock
        # The searches of waiters that have begun. One of them reads the records for all that
        # search the same ones, so that many waiters do not keep the event loop from payments.
        self._read_lock = asyncio.Lock()
        self._searches: dict[Subject, list[MatchCollector]] = defaultdict(list)

    async def find(
        self,
        kind: RecordKind,
        match: Mapping[str, object],
        limit: int,
        after: str | None = None,
        *,
        since: datetime | None = None,
    ) -> RecordPage:
        """The newest records that match, at most `limit`, after the one with the id `after`.

        A masked value is found by the original and by what is shown of it.
        since: the search ends at records that began before this time; it may find some of them. A
        time later than now ends no search: the clock was set back, and newer records are earlier.
        """
        search = MatchCollector(kind, match, limit + 1)
        await self._read(kind, _first_page(kind, match)._replace(after=after), [search], since)
        found = search.found[:limit]
        has_more = len(search.found) > limit and found
        return RecordPage(found, str(found[-1][kind.id_field]) if has_more else None)

    async def page(
        self, kind: RecordKind, match: Mapping[str, object], limit: int, after: str | None
    ) -> RecordPage:
        """As `find`, but raises `UnknownAfter` if no record has the id `after`."""
        found = await self.find(kind, match, limit, after)
        if after is None or found.records or await self.newest(kind, {kind.id_field: after}):
            return found
        raise UnknownAfter(after)

    async def newest(
        self, kind: RecordKind, match: Mapping[str, object], *, since: datetime | None = None
    ) -> Shown | None:
        """The newest record that matches, or None; it reads no further. since: as in `find`."""
        search = MatchCollector(kind, match, 1)
        await self._read(kind, _first_page(kind, match), [search], since)
        return next(iter(search.found), None)

    async def count(self, kind: RecordKind, match: Mapping[str, object]) -> int:
        """How many records match."""
        return len((await self.find(kind, match, limit=sys.maxsize)).records)

    async def wait(
        self, kind: RecordKind, match: Mapping[str, object], count: int, timeout_s: float
    ) -> WaitResult:
        """Wait until `count` records match, for at most `timeout_s` of real time."""
        service_id = _service_of(match) if kind.inbox is None else None
        subject = Subject(kind.type, service_id, kind.inbox)
        as_requested, match = match, redact_document(match)
        condition = WaitCondition(
            subject, kind.id_field, compiled_match(match), selective_field(kind, match), count
        )

        async def search() -> Sequence[Shown]:
            collector = MatchCollector(kind, as_requested, count)
            return await self._search_for_waiter(kind, subject, collector)

        return await self._waiters.wait_for(condition, search, timeout_s)

    async def _search_for_waiter(
        self, kind: RecordKind, subject: Subject, search: MatchCollector
    ) -> Sequence[Shown]:
        """Search for a waiter: newest records at once, older ones together with other waiters."""
        newest = Listing(subject.service_id, None, PAGE_SIZE)
        search.take(records := await self._page(kind, newest), ShownOnce(kind, self._clock.now()))
        if search.is_full or len(records) < PAGE_SIZE:
            return search.found
        searches = self._searches[subject]
        search.clear()
        searches.append(search)
        try:
            async with self._read_lock:
                if search in searches:
                    together = tuple(searches)
                    await self._read(kind, newest, together)
                    searches[:] = [each for each in searches if each not in together]
        finally:
            if search in searches:
                searches.remove(search)
            if not searches:
                self._searches.pop(subject, None)
        return search.found

    async def clear_requests(self, service_id: int | None) -> int:
        """Delete the requests of a service, or of all (None), except those of mode P.

        Returns how many it deleted.
        """
        await self._journal.save()
        return await self._store.run(lambda unit: unit.clear_entries(service_id))

    async def dropped_requests(self, service_id: int | None) -> int:
        """How many requests of a service, or of all (None), were dropped to keep newer ones."""
        return await self._store.run(lambda unit: unit.dropped_entries(service_id))

    async def _read(
        self,
        kind: RecordKind,
        listing: Listing,
        searches: Sequence[MatchCollector],
        since: datetime | None = None,
    ) -> None:
        """Read records, newest first, until all searches are full or there are no more."""
        for search in searches:
            search.clear()
        while True:
            began, now = self._clock.monotonic(), self._clock.now()
            records, shown = await self._page(kind, listing), ShownOnce(kind, now)
            for search in searches:
                search.take(records, shown)
            if len(records) < listing.limit or all(search.is_full for search in searches):
                return
            if since is not None and getattr(records[-1], kind.time_field) < since <= now:
                return
            took_s = self._clock.monotonic() - began
            last = getattr(records[-1], kind.id_field)
            listing = listing._replace(after=last, limit=next_page_size(listing.limit, took_s))
            await self._clock.pause(0)

    async def _page(self, kind: RecordKind, listing: Listing) -> Sequence[Any]:
        if kind is REQUESTS and listing.after is None:
            await self._journal.save()
        return await self._store.run(lambda unit: kind.list_page(unit, listing))


def _first_page(kind: RecordKind, match: Mapping[str, object]) -> Listing:
    """The records that a search reads first, of the service, mode and id that it names."""
    mode = next((each for each in ServiceMode if each == match.get("mode")), None)
    return Listing(_service_of(match), limit=PAGE_SIZE, mode=mode, only=_only_indexed(kind, match))


def _only_indexed(
    kind: RecordKind, match: Mapping[str, object]
) -> tuple[str, Sequence[str]] | None:
    """The indexed field that rules out most records, with the values that it may have."""
    variants = _masked_variants(match)
    if variants and "transaction_id" in kind.indexed:
        return "transaction_id", variants
    name, value = selective_field(kind, redact_document(match)) or ("", None)
    # No id that is kept has characters such as NUL, which a database may refuse to compare.
    is_indexed = name in kind.indexed and isinstance(value, str) and value.isprintable()
    return (name, (str(value),)) if is_indexed else None


def _service_of(match: Mapping[str, object]) -> int | None:
    """The service that a search is for; None for all, or if no service can have that id."""
    service_id = match.get("service_id")
    if isinstance(service_id, int) and 0 < service_id <= _LARGEST_SERVICE_ID:
        return service_id
    return None


# How many records that fit an id are read, and how many of them an error lists.
_MAX_CANDIDATES: Final = 1000

_LISTED: Final = 10


class AmbiguousId(ValueError):
    """An id fits several records; the text lists them and says what to use instead."""


class RecordIds:
    """Finds a callback or a transaction by any of its ids.

    service_id: only of this service; None: of any.
    """

    def __init__(self, records: RecordSearch) -> None:
        self._records = records

    async def callback(self, any_id: str, service_id: int | None = None) -> Shown | None:
        """The callback with this id, or None; `AmbiguousId` if several have it."""
        for name in ("id", "network_transaction_id", "transaction_id"):
            found = await self._find_by_id(CALLBACKS, name, any_id, service_id)
            if found:
                return _single(found, any_id, "callbacks", _callback_line, "use the id of one")
        return None

    async def transaction(
        self, any_id: str, service_id: int | None = None, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> Shown | None:
        """The transaction with this id, or None; `AmbiguousId` if several services have it.

        If one service used a `transaction_id` more than once, it is the newest.
        """
        found = await self._find_by_id(TRANSACTIONS, "transaction_id", any_id, service_id, mode)
        newest = {record["service_id"]: record for record in reversed(found)}
        if newest:
            instead = "name the service too, or use the network transaction id"
            return _single([*newest.values()], any_id, "transactions", _transaction_line, instead)
        network_id = any_id
        for callback in await self._find_by_id(CALLBACKS, "id", any_id, service_id):
            network_id = str(callback["network_transaction_id"])
        field = "network_transaction_id"
        found = await self._find_by_id(TRANSACTIONS, field, network_id, service_id, mode)
        return found[0] if found else None

    async def _find_by_id(
        self,
        kind: RecordKind,
        field: str,
        value: str,
        service_id: int | None,
        mode: ServiceMode | None = None,
    ) -> Sequence[Shown]:
        match: dict[str, object] = {field: value} if mode is None else {field: value, "mode": mode}
        if service_id is not None:
            match["service_id"] = service_id
        return (await self._records.find(kind, match, _MAX_CANDIDATES)).records


def _single(
    found: Sequence[Shown],
    any_id: str,
    plural: str,
    describe: Callable[[Shown], str],
    instead: str,
) -> Shown:
    if len(found) == 1:
        return found[0]
    lines = [*map(describe, found[:_LISTED])]
    lines += [f"and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
    raise AmbiguousId(
        f"{any_id!r} fits {len(found)} {plural}, so {instead}:\n  " + "\n  ".join(lines)
    )


def _callback_line(record: Shown) -> str:
    details = f"service {record['service_id']}, transaction {record['transaction_id']}"
    return f"{record['id']}  {details}, {record['state']}, created {record['created_at']}"


def _transaction_line(record: Shown) -> str:
    timeline: Any = record["timeline"]
    identity = f"{record['network_transaction_id']}  service {record['service_id']}"
    return f"{identity}, status {record['status']}, begun {timeline[0]['at']}"


_PENDING: Final = {"mode": ServiceMode.SANDBOX.value, "status": Status.PENDING.value}


@dataclass(frozen=True, eq=False)
class OpenTransactions:
    """Lists transactions that are open. live: the records of production; None if it is off."""

    records: RecordSearch
    clock: Clock
    live: "LiveRecordReader | None"

    async def longer_than(self, duration: timedelta) -> Sequence[Mapping[str, Any]]:
        """Transactions that have been pending for longer, newest first.

        Those of mode P say why they are open, and include SMS.
        """
        opened_before = self.clock.now() - duration
        live = () if self.live is None else await self.live.opened_before(opened_before)
        found = await self.records.find(TRANSACTIONS, _PENDING, sys.maxsize)
        pending = [each for each in found.records if begun(each) <= iso(opened_before)]
        return sorted((*live, *pending), key=begun, reverse=True)


def begun(transaction: Mapping[str, Any]) -> str:
    """When a transaction began, in ISO 8601."""
    at: str = transaction["timeline"][0]["at"]
    return at
