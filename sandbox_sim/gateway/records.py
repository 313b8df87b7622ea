"""Finding, counting and waiting for what the gateway has done. Source: docs/control-api.md.

Records are searched by the fields that they are shown with, newest first. A search for one service
looks at nothing of another.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sandbox_sim.domain import callbacks, inbox, journal, sms, transactions
from sandbox_sim.domain.listing import Listing, matches
from sandbox_sim.gateway.journal import Journal
from sandbox_sim.gateway.ports import Store, Unit
from sandbox_sim.gateway.watch import Watch

Shown = dict[str, object]

# How many records one unit of work reads; between two of them others have their turn.
_AT_ONCE: Final = 500
# No service has a larger number, and no database takes one.
_LARGEST_SERVICE_ID: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of record: how a stretch of it is read, shown, and named."""

    listed: Callable[[Unit, Listing], Awaitable[Sequence[Any]]]
    shown: Callable[[Any], Shown]
    name: str
    fields: tuple[str, ...]


TRANSACTIONS: Final = Kind(
    lambda unit, listing: unit.list_transactions(listing),
    transactions.shown,
    "network_transaction_id",
    transactions.SHOWN_FIELDS,
)
CALLBACKS: Final = Kind(
    lambda unit, listing: unit.list_callbacks(listing),
    callbacks.shown,
    "id",
    callbacks.SHOWN_FIELDS,
)
MESSAGES: Final = Kind(
    lambda unit, listing: unit.list_messages(listing),
    sms.shown,
    "processing_id",
    sms.SHOWN_FIELDS,
)


REQUESTS: Final = Kind(
    lambda unit, listing: unit.list_entries(listing), journal.shown, "id", journal.SHOWN_FIELDS
)


def inbox_of(name: str) -> Kind:
    """What lies in an inbox."""
    return Kind(
        lambda unit, listing: unit.inbox_messages(name, listing._replace(service_id=None)),
        inbox.shown,
        "id",
        inbox.SHOWN_FIELDS,
    )


class Found(NamedTuple):
    """Records as they are shown; `next` is the id after which more may follow, None at the end."""

    records: Sequence[Shown]
    next: str | None


class Records:
    """Searches, over any store."""

    def __init__(self, store: Store, journal: Journal, watch: Watch) -> None:
        self._store = store
        self._journal = journal
        self._watch = watch

    async def find(
        self, kind: Kind, match: Mapping[str, object], limit: int, after: str | None = None
    ) -> Found:
        """The newest records that match, at most `limit` of them."""
        await self._journal.save()
        found: list[Shown] = []
        listing = Listing(_service_of(match), after, _AT_ONCE)
        while True:
            some = await self._stretch(kind, listing)
            for record in map(kind.shown, some):
                if len(found) == limit:
                    return Found(found, str(found[-1][kind.name]) if found else None)
                if matches(record, match):
                    found.append(record)
            if len(some) < _AT_ONCE:
                return Found(found, None)
            listing = listing._replace(after=getattr(some[-1], kind.name))

    async def count(self, kind: Kind, match: Mapping[str, object]) -> int:
        """How many records match."""
        return len((await self.find(kind, match, limit=sys.maxsize)).records)

    async def wait(
        self, kind: Kind, match: Mapping[str, object], count: int, timeout_s: float
    ) -> Sequence[Shown] | None:
        """The newest `count` records that match, once there are so many; None after `timeout_s`."""

        async def look() -> Sequence[Shown] | None:
            found = await self.find(kind, match, count)
            return found.records if len(found.records) == count else None

        return await self._watch.until(look, timeout_s)

    async def clear_requests(self, service_id: int | None) -> int:
        """Empty the journal of a service, or of all; how many requests it had."""
        await self._journal.save()
        return await self._store.run(lambda unit: unit.clear_entries(service_id))

    async def dropped_requests(self, service_id: int | None) -> int:
        """How many requests had to make room for newer ones."""
        return await self._store.run(lambda unit: unit.dropped_entries(service_id))

    async def _stretch(self, kind: Kind, listing: Listing) -> Sequence[Any]:
        async def work(unit: Unit) -> Sequence[Any]:
            return await kind.listed(unit, listing)

        return await self._store.run(work)


def _service_of(match: Mapping[str, object]) -> int | None:
    """The one service that a search is for, as far as a store can tell."""
    service_id = match.get("service_id")
    if isinstance(service_id, int) and 0 < service_id <= _LARGEST_SERVICE_ID:
        return service_id
    return None
