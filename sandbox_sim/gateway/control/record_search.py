"""Finds, counts and waits for records of all kinds. Source: docs/control-api.md.

Records are searched by the fields that they are shown with, newest first. A search for one service
reads no record of another.
"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple

from sandbox_sim.domain.callbacks import callbacks, inbox
from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.control import journal
from sandbox_sim.domain.control.events import EventType
from sandbox_sim.domain.control.listing import Listing, compiled_match, merged
from sandbox_sim.domain.payments import transactions
from sandbox_sim.domain.payments.transactions import Transaction
from sandbox_sim.domain.redaction import redact_document, redact_text
from sandbox_sim.domain.sms import sms_messages
from sandbox_sim.gateway.control.journal import Journal
from sandbox_sim.gateway.control.searches import (
    AT_ONCE,
    Kind,
    Search,
    ShownOnce,
    next_size,
    selective_field,
)
from sandbox_sim.gateway.control.wait_for_records import Awaited, Came, Shown, Subject, Waiters
from sandbox_sim.gateway.ports import Clock, Store, Unit

# No service has a larger number, and no database takes one.
_LARGEST_SERVICE_ID: Final = 2**63 - 1


async def _transactions(unit: Unit, listing: Listing) -> Sequence[Transaction]:
    """Those of mode P, which are stored apart, and those of mode S, by the time they began."""
    live = await unit.list_live_transactions(listing)
    sandbox = await unit.list_transactions(listing)
    return merged((live, sandbox), attrgetter("initiated_at"), listing.limit) if live else sandbox


TRANSACTIONS: Final = Kind(
    EventType.TRANSACTION,
    _transactions,
    transactions.shown,
    "network_transaction_id",
    transactions.SHOWN_FIELDS,
    plain=("network_transaction_id", "transaction_id", "service_id"),
    values=transactions.FIELD_VALUES,
    time="initiated_at",
)
_OF_MODE: Final[Mapping[str, Kind]] = {
    ServiceMode.PRODUCTION: replace(
        TRANSACTIONS, listed=lambda unit, listing: unit.list_live_transactions(listing)
    ),
    ServiceMode.SANDBOX: replace(
        TRANSACTIONS, listed=lambda unit, listing: unit.list_transactions(listing)
    ),
}
CALLBACKS: Final = Kind(
    EventType.CALLBACK,
    lambda unit, listing: unit.list_callbacks(listing),
    callbacks.shown,
    "id",
    callbacks.SHOWN_FIELDS,
    plain=("id", "network_transaction_id", "transaction_id", "service_id"),
    values=callbacks.FIELD_VALUES,
    time="created_at",
)
MESSAGES: Final = Kind(
    EventType.SMS,
    lambda unit, listing: unit.list_messages(listing),
    sms_messages.shown,
    "processing_id",
    sms_messages.SHOWN_FIELDS,
    plain=("processing_id", "batch_id", "customer_number", "message", "service_id"),
    values=sms_messages.FIELD_VALUES,
    time="created_at",
)


REQUESTS: Final = Kind(
    EventType.REQUEST,
    lambda unit, listing: unit.list_entries(listing),
    journal.shown,
    "id",
    journal.SHOWN_FIELDS,
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


def inbox_of(name: str) -> Kind:
    """The messages of an inbox."""
    name = redact_text(name)  # as it is kept
    return Kind(
        EventType.INBOX,
        lambda unit, listing: unit.inbox_messages(name, listing._replace(service_id=None)),
        inbox.shown,
        "id",
        inbox.SHOWN_FIELDS,
        plain=("id", "method", "signature"),
        inbox=name,
    )


class Found(NamedTuple):
    """A page of records as they are shown.

    next: the id after which the next page begins; None at the end.
    """

    records: Sequence[Shown]
    next: str | None


class Records:
    """Searches the records of a store."""

    def __init__(self, store: Store, journal: Journal, waiters: Waiters, clock: Clock) -> None:
        self._store = store
        self._journal = journal
        self._waiters = waiters
        self._clock = clock
        # The searches of waiters that have begun. One of them reads the records for all that
        # search the same ones, so that many waiters do not take the event loop from payments.
        self._one_reads = asyncio.Lock()
        self._searches: dict[Subject, list[Search]] = defaultdict(list)

    async def find(
        self,
        kind: Kind,
        match: Mapping[str, object],
        limit: int,
        after: str | None = None,
        *,
        since: datetime | None = None,
    ) -> Found:
        """The newest records that match, at most `limit`, after the one with the id `after`.

        A masked value is found by the original and by what is shown of it.
        since: the search ends at records that began before this time; it may find some of them.
        """
        if kind is REQUESTS:
            await self._journal.save()
        kind = _of_mode(kind, match)
        search = Search(kind, match, limit + 1)
        await self._read(kind, Listing(_service_of(match), after, AT_ONCE), [search], since)
        found = search.found[:limit]
        follows = len(search.found) > limit and found
        return Found(found, str(found[-1][kind.name]) if follows else None)

    async def newest(
        self, kind: Kind, match: Mapping[str, object], *, since: datetime | None = None
    ) -> Shown | None:
        """The newest record that matches, or None; it reads no further. since: as in `find`."""
        if kind is REQUESTS:
            await self._journal.save()
        search = Search(kind, match, 1)
        await self._read(kind, Listing(_service_of(match), None, AT_ONCE), [search], since)
        return next(iter(search.found), None)

    async def count(self, kind: Kind, match: Mapping[str, object]) -> int:
        """How many records match."""
        return len((await self.find(kind, match, limit=sys.maxsize)).records)

    async def wait(
        self, kind: Kind, match: Mapping[str, object], count: int, timeout_s: float
    ) -> Came:
        """Wait until `count` records match, for at most `timeout_s` of real time."""
        service_id = _service_of(match) if kind.inbox is None else None
        subject = Subject(kind.type, service_id, kind.inbox)
        asked, match = match, redact_document(match)
        wanted = Awaited(
            subject, kind.name, compiled_match(match), selective_field(kind, match), count
        )

        async def search() -> Sequence[Shown]:
            return await self._search(kind, subject, Search(kind, asked, count))

        return await self._waiters.until(wanted, search, timeout_s)

    async def _search(self, kind: Kind, subject: Subject, search: Search) -> Sequence[Shown]:
        """Search for a waiter: in the newest records at once, in all others one after another."""
        if kind is REQUESTS:
            await self._journal.save()
        newest = Listing(subject.service_id, None, AT_ONCE)
        search.take(records := await self._page(kind, newest), ShownOnce(kind))
        if search.is_full or len(records) < AT_ONCE:
            return search.found
        searches = self._searches[subject]
        search.begin_anew()
        searches.append(search)
        try:
            async with self._one_reads:
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
        """Delete the requests of a service, or of all (None), but those of mode P.

        Returns how many it deleted.
        """
        await self._journal.save()
        return await self._store.run(lambda unit: unit.clear_entries(service_id))

    async def dropped_requests(self, service_id: int | None) -> int:
        """How many requests of a service, or of all (None), newer ones have replaced."""
        return await self._store.run(lambda unit: unit.dropped_entries(service_id))

    async def _read(
        self,
        kind: Kind,
        listing: Listing,
        searches: Sequence[Search],
        since: datetime | None = None,
    ) -> None:
        """Read records, newest first, until all searches are full or there are no more."""
        for search in searches:
            search.begin_anew()
        while True:
            began = self._clock.monotonic()
            records, shown = await self._page(kind, listing), ShownOnce(kind)
            for search in searches:
                search.take(records, shown)
            if len(records) < listing.limit or all(search.is_full for search in searches):
                return
            if since is not None and getattr(records[-1], kind.time) < since:
                return
            took_s = self._clock.monotonic() - began
            last = getattr(records[-1], kind.name)
            listing = listing._replace(after=last, limit=next_size(listing.limit, took_s))
            await self._clock.pause(0)

    async def _page(self, kind: Kind, listing: Listing) -> Sequence[Any]:
        async def work(unit: Unit) -> Sequence[Any]:
            return await kind.listed(unit, listing)

        return await self._store.run(work)


def _of_mode(kind: Kind, match: Mapping[str, object]) -> Kind:
    """The kind of the records that a search reads: transactions of one mode where it names it."""
    mode = match.get("mode")
    return _OF_MODE.get(mode, kind) if kind is TRANSACTIONS and isinstance(mode, str) else kind


def _service_of(match: Mapping[str, object]) -> int | None:
    """The service that a search is for; None for all, or if no service can have that id."""
    service_id = match.get("service_id")
    if isinstance(service_id, int) and 0 < service_id <= _LARGEST_SERVICE_ID:
        return service_id
    return None
