"""Pages of the lists: searched, newest first, and bounded however many records there are."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sandbox_sim.domain.response_codes import ACCEPTED
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.control.record_search import (
    CALLBACKS,
    MESSAGES,
    REQUESTS,
    TRANSACTIONS,
    Records,
)
from sandbox_sim.gateway.control.searches import Kind
from sandbox_sim.web.pages.production.waiting_rows import WAITING, waiting_rows
from sandbox_sim.web.pages.rows import (
    Row,
    callback_row,
    journal_row,
    payment_row,
    request_row,
    sms_row,
)
from sandbox_sim.web.pages.search import Facts, Search
from sandbox_sim.web.pages.texts import Texts

if TYPE_CHECKING:
    from sandbox_sim.gateway.networks.live_records import LiveRecords

PAGE_SIZE: Final = 50
# One page reads at most so many records of a kind, so a search for what is not there ends soon.
_MOST_READ: Final = 2_000
_CHUNK: Final = 200
# How many of the newest callbacks the list of payments looks for its own in.
NEWEST_CALLBACKS: Final = 500
_PAYMENTS: Final = frozenset(
    {
        Operation.COLLECT.value,
        Operation.CARD.value,
        Operation.DEPOSIT.value,
        Operation.PAYOUT.value,
        Operation.BILL.value,
        Operation.AIRTIME.value,
    }
)
_SIMPLE: Final[Mapping[str, tuple[Kind, Callable[[Texts, Any], tuple[Row, Facts]]]]] = {
    "callbacks": (CALLBACKS, callback_row),
    "sms": (MESSAGES, sms_row),
    "requests": (REQUESTS, journal_row),
}

# What a transaction and its request have in common: service, mode and `transaction_id`.
_Name = tuple[int, str, str]


class RowPage(NamedTuple):
    """A page of rows. next: where the next one begins; None at the end."""

    rows: tuple[Row, ...]
    next: str | None


class _Stream:
    """Records of one kind, newest first, read in chunks. after: the id of the last one taken."""

    def __init__(
        self, records: Records, kind: Kind, match: Mapping[str, object], after: str | None
    ) -> None:
        self._records = records
        self._kind = kind
        self._match = match
        self._chunk: list[Any] = []
        self._more = True
        self.after = after
        self.read = 0

    async def peek(self) -> Any:
        """The next record; None at the end."""
        if not self._chunk and self._more:
            found = await self._records.find(self._kind, self._match, _CHUNK, self.after)
            self._chunk = [*reversed(found.records)]
            self._more = found.next is not None
        return self._chunk[-1] if self._chunk else None

    def take(self) -> Any:
        """Take the record that `peek` returned."""
        record = self._chunk.pop()
        self.after = str(record[self._kind.name])
        self.read += 1
        return record


class Listing:
    """The lists of payments, callbacks, SMS and requests.

    live: the records of production; None where it is off.
    """

    def __init__(self, records: Records, text: Texts, live: "LiveRecords | None") -> None:
        self._records = records
        self._text = text
        self._live = live

    async def page(self, view: str, search: Search, after: str | None) -> RowPage:
        """A page of one list. after: the `next` of the page before."""
        if view == "payments" and WAITING in search.flags:
            return await self._waiting(search, after)
        if view == "payments":
            return await self._payments(search, after)
        kind, shown = _SIMPLE[view]
        stream = _Stream(self._records, kind, _match(search), after)
        rows: list[Row] = []
        while await stream.peek() is not None and _goes_on(rows, stream):
            row, facts = shown(self._text, stream.take())
            if search.accepts(facts):
                rows.append(row)
        more = await stream.peek() is not None
        return RowPage(tuple(rows), stream.after if more else None)

    async def callbacks_of(self, search: Search) -> list[Any]:
        """The newest callbacks of the service that is searched, or of all."""
        found = await self._records.find(CALLBACKS, _match(search), NEWEST_CALLBACKS)
        return [*found.records]

    async def _waiting(self, search: Search, after: str | None) -> RowPage:
        rows = [] if self._live is None else await waiting_rows(self._live, search, self._text)
        first = 0
        if after is not None:
            keys = [row.key for row in rows]
            first = keys.index(after) + 1 if after in keys else len(keys)
        page = tuple(rows[first : first + PAGE_SIZE])
        return RowPage(page, page[-1].key if len(rows) > first + len(page) else None)

    async def _payments(self, search: Search, after: str | None) -> RowPage:
        """Transactions, and between them requests for payments that left none, by time.

        A request comes before its transaction, so in this order it is met after it. `oldest` is
        when the last transaction began that was taken: an accepted request that is not older has
        its transaction in the list already, on this page or on an earlier one. `seed` adds records
        whose times are past, so a request can also be met before its transaction.
        """
        first, second, oldest = [*(after or "").split("~"), "", "", ""][:3]
        match = _match(search)
        payments = _Stream(self._records, TRANSACTIONS, match, first or None)
        requests = _Stream(self._records, REQUESTS, match, second or None)
        callbacks: dict[str, Any] = {}
        for callback in await self.callbacks_of(search):
            callbacks.setdefault(callback["network_transaction_id"], callback)
        taken: dict[_Name, int] = {}  # the places of transactions without a request
        asked: dict[_Name, int] = {}  # and of accepted requests without a transaction
        found: list[tuple[Any, Any]] = []  # a transaction and its request; one of them may be None
        kept = 0
        while kept < PAGE_SIZE and payments.read + requests.read < _MOST_READ:
            payment, entry = await payments.peek(), await requests.peek()
            if payment is None and entry is None:
                break
            if payment is not None and (entry is None or _begun(payment) >= entry["at"]):
                payments.take()
                name = _name(payment)
                place = asked.pop(name, None)
                if place is not None and _begun(payment) >= found[place][1]["at"]:
                    found[place] = (payment, found[place][1])
                    continue
                taken[name] = len(found)
                found.append((payment, None))
                oldest = _begun(payment)
                kept += search.accepts(self._row(payment, None, callbacks)[1])
                continue
            requests.take()
            place = taken.pop(_name(entry), None) if entry["code"] in _LEFT else None
            if place is not None:
                found[place] = (found[place][0], entry)
            elif entry["code"] in _LEFT and oldest and entry["at"] >= oldest:
                continue
            elif entry["operation"] in _PAYMENTS:
                if entry["code"] in _LEFT:
                    asked[_name(entry)] = len(found)
                found.append((None, entry))
                kept += search.accepts(request_row(self._text, entry)[1])
        rows = [
            row
            for payment, entry in found
            for row, facts in [self._row(payment, entry, callbacks)]
            if search.accepts(facts)
        ]
        more = await payments.peek() is not None or await requests.peek() is not None
        position = f"{payments.after or ''}~{requests.after or ''}~{oldest}"
        return RowPage(tuple(rows), position if more else None)

    def _row(self, payment: Any, entry: Any, callbacks: Mapping[str, Any]) -> tuple[Row, Facts]:
        if payment is None:
            return request_row(self._text, entry)
        callback = callbacks.get(payment["network_transaction_id"])
        return payment_row(self._text, payment, entry, callback)


# The codes after which there is a transaction (D15).
_LEFT: Final = frozenset({*ACCEPTED, "015"})


def _goes_on(rows: list[Row], stream: _Stream) -> bool:
    return len(rows) < PAGE_SIZE and stream.read < _MOST_READ


def _begun(payment: Any) -> str:
    at: str = payment["timeline"][0]["at"]
    return at


def _name(record: Any) -> _Name:
    return record["service_id"], record["mode"], record["transaction_id"]


def _match(search: Search) -> Mapping[str, object]:
    return {} if search.service_id is None else {"service_id": search.service_id}
