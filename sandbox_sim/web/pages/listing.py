"""Searches the lists of the dashboard, page by page, newest first. Source: D39."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from sandbox_sim.control.record_search import (
    CALLBACKS,
    MESSAGES,
    REQUESTS,
    TRANSACTIONS,
    OpenTransactions,
    RecordKind,
    RecordSearch,
    begun,
)
from sandbox_sim.operations import PAYMENTS, Operation
from sandbox_sim.overrides.faults import ANSWER_LOST
from sandbox_sim.production.attempt_views import LiveRecordReader, StuckCounts
from sandbox_sim.records.listing import Listing, merged_page
from sandbox_sim.records.transactions import status_words
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.response_codes import ACCEPTED
from sandbox_sim.web.pages.formats import counted, money, operation_name, spaced
from sandbox_sim.web.pages.search import SearchFields, SearchQuery, search_fields

Record = Mapping[str, Any]


class Badge(NamedTuple):
    """A state and the words for it."""

    state: str
    words: str


class Button(NamedTuple):
    """A button that sends a POST. path: below `/_sandbox/`. body: JSON. done: the message after.

    key: the key that presses it.
    """

    words: str
    path: str
    body: str = "{}"
    done: str = ""
    primary: bool = False
    key: str = ""


class Row(NamedTuple):
    """A row: title and detail (the amount) in its first line, badges and note in its second.

    key: identifies the record in the address of its timeline.
    buttons: a row with buttons can also be settled.
    """

    key: str
    at: str
    title: str
    detail: str
    badges: tuple[Badge, ...]
    note: str
    buttons: tuple[Button, ...] = ()


def is_answer_lost(entry: Record) -> bool:
    """Whether a fault kept the answer from the client."""
    return any(each.startswith(ANSWER_LOST) for each in entry["warnings"])


def queried_status(entry: Record) -> str | None:
    """The status that a status query returned; None for any other request."""
    if entry["operation"] != Operation.STATUS or entry["code"] not in ACCEPTED:
        return None
    answer = entry["answer"]
    data = answer.get("response_data") if isinstance(answer, dict) else None
    return data.get("status") if isinstance(data, dict) else None


def answer_badge(entry: Record) -> Badge:
    """How a request ended for the client."""
    code, status = entry["code"], queried_status(entry)
    if is_answer_lost(entry):
        return Badge("bad", "no answer")
    if status is not None:
        return Badge(status, status_words(status))
    accepted = code in ACCEPTED
    return Badge("202" if accepted else "bad", f"{code} {'accepted' if accepted else 'rejected'}")


def payment_row(
    record: Record, entry: Record | None, callback: Record | None
) -> tuple[Row, SearchFields]:
    """The row of a transaction. entry: its request, if the journal has it."""
    status, state = record["status"], None if callback is None else callback["state"]
    is_declined = entry is not None and entry["code"] == "015"
    words = "015 declined" if is_declined else status_words(status)
    badge = Badge("015" if is_declined else status, words)
    badges: tuple[Badge, ...] = (badge,)
    if state:
        badges = (badge, Badge(state, f"callback {state}"))
    note = f"{record['transaction_id']} · {record['reference']}"
    if is_declined and entry is not None:
        note = entry["why"]
    row = Row(
        f"t:{record['service_id']}:{record['network_transaction_id']}",
        record["timeline"][0]["at"],
        _payment_title(record["operation"], record["nw"], record["party"]),
        f"{record['currency_code']} {money(record['amount'])}",
        badges,
        note,
    )
    code = None if entry is None else entry["code"]
    texts = (*row, record["transaction_id"], record["reference"], record["party"], record["amount"])
    states, mode = (status, state, code), record["mode"]
    return row, search_fields(record["operation"], states, state, texts, mode, rejected=is_declined)


def request_row(entry: Record) -> tuple[Row, SearchFields]:
    """The row of a request: for a payment without a transaction, or any other operation."""
    code, body = entry["code"], entry["request"] if isinstance(entry["request"], dict) else {}
    rejected = code not in ACCEPTED
    party = body.get("customer_number") or body.get("account_number") or ""
    row = Row(
        f"r:{entry['id']}",
        entry["at"],
        _payment_title(entry["operation"], body.get("nw"), party)
        if entry["operation"]
        else f"{entry['method']} {entry['path']}",
        f"{body.get('currency_code') or 'GHS'} {money(body['amount'])}" if "amount" in body else "",
        (answer_badge(entry),),
        entry["transaction_id"] or "" if queried_status(entry) else entry["why"],
    )
    texts = (*row, entry["transaction_id"], party, entry["path"], entry["rule"], body)
    states, mode = (code, queried_status(entry)), entry["mode"]
    return row, search_fields(entry["operation"], states, None, texts, mode, rejected=rejected)


def journal_row(entry: Record) -> tuple[Row, SearchFields]:
    """The row of a request in production: it also shows the mode."""
    row, fields = request_row(entry)
    mode = entry["mode"]
    words = f"mode {mode}" if mode else "mode unknown"
    return row._replace(badges=(*row.badges, Badge("info", words))), fields


def callback_row(callback: Record) -> tuple[Row, SearchFields]:
    attempts, state = callback["attempts"], callback["state"]
    verdict = attempts[-1]["verdict"] if attempts else "not tried yet"
    row = Row(
        f"c:{callback['id']}",
        callback["created_at"],
        callback["url"],
        counted(len(attempts), "attempt"),
        (Badge(state, state),),
        f"{callback['transaction_id']} · {verdict}",
    )
    texts = (*row, callback["id"], callback["network_transaction_id"], callback["profile"])
    return row, search_fields(None, (state,), state, texts, callback["mode"])


def sms_row(message: Record) -> tuple[Row, SearchFields]:
    status = message["status"]
    row = Row(
        f"m:{message['processing_id']}",
        message["created_at"],
        f"{message['sender_id']} to {message['customer_number']}",
        counted(message["page_count"], "page"),
        (Badge(status, status),),
        message["message"],
    )
    texts = (*row, message["processing_id"], message["batch_id"], message["message"])
    return row, search_fields("sms", (status,), None, texts, message["mode"])


def _payment_title(operation: str, nw: object, party: object) -> str:
    parts = operation_name(operation), str(nw or ""), spaced(str(party or ""))
    return " · ".join(filter(None, parts))


WAITING: Final = "waiting"

# After this time the dashboard reports that a payment is open.
OPEN_LIMIT: Final = timedelta(minutes=10)


def transaction_path(record: Record) -> str:
    """The path of a transaction by the id that no newer one has too."""
    return f"transactions/{record['service_id']}/{quote(record['network_transaction_id'], safe='')}"


def ask_button(record: Record, *, primary: bool = False) -> Button:
    """The button that asks the network of a transaction of mode P now."""
    return Button("Ask the network now", f"{transaction_path(record)}/ask", primary=primary)


def _pending_row(record: Record) -> tuple[Row, SearchFields]:
    """The row of a payment or SMS that is open or waits for a person, with the reasons."""
    row, _ = payment_row(record, None, None)
    name, reasons = record["transaction_id"], record.get("waiting", ())
    badges = (*row.badges, Badge("002", "waits for a person")) if reasons else row.badges
    why = reasons or record.get("open_because", ())
    buttons = (ask_button(record),) if record["mode"] == ServiceMode.PRODUCTION else ()
    row = row._replace(badges=badges, note=" · ".join((name, *why)), buttons=buttons)
    if record["operation"] == Operation.SMS:
        row = row._replace(key=f"m:{name}")
    states = record["status"], WAITING if reasons else None
    texts = (*row[:-1], record["reference"], record["party"], record["amount"])
    return row, search_fields(record["operation"], states, None, texts, record["mode"])


PAGE_SIZE: Final = 50

# One page reads at most this many records of a kind, so that a search without matches ends soon.
_MAX_READ: Final = 2_000

_CHUNK: Final = 200

# How many of the newest callbacks the list of payments searches.
NEWEST_CALLBACKS: Final = 500

_KINDS: Final[Mapping[str, tuple[RecordKind, Callable[[Any], tuple[Row, SearchFields]]]]] = {
    "callbacks": (CALLBACKS, callback_row),
    "sms": (MESSAGES, sms_row),
    "requests": (REQUESTS, request_row),
}


# The fields that a transaction and its request share: service, mode and `transaction_id`.
_TransactionKey = tuple[int, str, str]


class RowPage(NamedTuple):
    """A page of rows. next: where the next one begins; None at the end."""

    rows: tuple[Row, ...]
    next: str | None


class _RecordReader:
    """Reads records of one kind in chunks, newest first. after: the id of the last one taken."""

    def __init__(
        self,
        records: RecordSearch,
        kind: RecordKind,
        match: Mapping[str, object],
        after: str | None,
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
        self.after = str(record[self._kind.id_field])
        self.read += 1
        return record


@dataclass(frozen=True, eq=False)
class RecordLists:
    """The lists of payments, callbacks, SMS and requests.

    live: the records of production; None if it is off.
    """

    records: RecordSearch
    pending: OpenTransactions
    live: LiveRecordReader | None

    async def page(self, view: str, search: SearchQuery, after: str | None) -> RowPage:
        """A page of one list. after: the `next` of the page before."""
        if view == "payments" and search.open_longer_than is not None:
            pending = await self.pending.longer_than(search.open_longer_than)
            return _pending_page(pending, search, after)
        if view == "payments" and WAITING in search.flags:
            waiting = () if self.live is None else await self.live.waiting()
            return _pending_page(waiting, search, after)
        if view == "payments":
            return await self._payments(search, after)
        kind, make_row = _KINDS[view]
        if kind is REQUESTS and self.live is not None:
            make_row = journal_row
        reader = _RecordReader(self.records, kind, _match(search), after)
        rows: list[Row] = []
        while len(rows) < PAGE_SIZE and reader.read < _MAX_READ and await reader.peek() is not None:
            row, fields = make_row(reader.take())
            if search.accepts(fields):
                rows.append(row)
        more = await reader.peek() is not None
        return RowPage(tuple(rows), reader.after if more else None)

    async def stuck(self) -> StuckCounts:
        """How many payments and SMS of mode P wait for a person, or are open for long."""
        return StuckCounts(0, 0) if self.live is None else await self.live.count_stuck(OPEN_LIMIT)

    async def callbacks_of(self, search: SearchQuery) -> list[Any]:
        """The newest callbacks of the service in the search, or of all."""
        found = await self.records.find(CALLBACKS, _match(search), NEWEST_CALLBACKS)
        return [*found.records]

    async def _payments(self, search: SearchQuery, after: str | None) -> RowPage:
        """Transactions, and requests for payments without a transaction, newest first.

        A request is older than its transaction, so it usually comes after it in this order.
        `oldest` is the time of the last transaction that was read: an accepted request that is not
        older already has its transaction in the list, on this page or on an earlier one. `seed`
        adds records with past times, so a request can also come before its transaction.
        """
        first, second, oldest = [*(after or "").split("~"), "", "", ""][:3]
        match = _match(search)
        payments = _RecordReader(self.records, TRANSACTIONS, match, first or None)
        requests = _RecordReader(self.records, REQUESTS, match, second or None)
        callbacks: dict[str, Any] = {}
        for callback in await self.callbacks_of(search):
            callbacks.setdefault(callback["network_transaction_id"], callback)
        # A transaction and its request; one of them may be None.
        pairs: list[tuple[Any, Any]] = []
        # The indexes of transactions without a request, and of requests without a transaction.
        lone_payments: dict[_TransactionKey, int] = {}
        lone_requests: dict[_TransactionKey, int] = {}
        matching = 0
        while matching < PAGE_SIZE and payments.read + requests.read < _MAX_READ:
            payment, entry = await payments.peek(), await requests.peek()
            if payment is None and entry is None:
                break
            if payment is not None and (entry is None or begun(payment) >= entry["at"]):
                payments.take()
                key = _transaction_key(payment)
                index = lone_requests.pop(key, None)
                if index is not None and begun(payment) >= pairs[index][1]["at"]:
                    pairs[index] = (payment, pairs[index][1])
                    continue
                lone_payments[key] = len(pairs)
                pairs.append((payment, None))
                oldest = begun(payment)
                matching += search.accepts(self._row(payment, None, callbacks)[1])
                continue
            requests.take()
            key = _transaction_key(entry)
            has_transaction = entry["code"] in _CODES_WITH_TRANSACTION
            index = lone_payments.pop(key, None) if has_transaction else None
            if index is not None:
                pairs[index] = (pairs[index][0], entry)
            elif has_transaction and oldest and entry["at"] >= oldest:
                continue
            elif entry["operation"] in PAYMENTS:
                if has_transaction:
                    lone_requests[key] = len(pairs)
                pairs.append((None, entry))
                matching += search.accepts(request_row(entry)[1])
        rows = [
            row
            for payment, entry in pairs
            for row, fields in [self._row(payment, entry, callbacks)]
            if search.accepts(fields)
        ]
        more = await payments.peek() is not None or await requests.peek() is not None
        position = f"{payments.after or ''}~{requests.after or ''}~{oldest}"
        return RowPage(tuple(rows), position if more else None)

    def _row(
        self, payment: Any, entry: Any, callbacks: Mapping[str, Any]
    ) -> tuple[Row, SearchFields]:
        if payment is None:
            return request_row(entry)
        callback = callbacks.get(payment["network_transaction_id"])
        return payment_row(payment, entry, callback)


# The codes after which there is a transaction (D15).
_CODES_WITH_TRANSACTION: Final = frozenset({*ACCEPTED, "015"})


def _pending_page(pending: Sequence[Record], search: SearchQuery, after: str | None) -> RowPage:
    """A page of the payments and SMS in `pending` that match."""
    of_service = (each for each in pending if search.service_id in {None, each["service_id"]})
    rows = [row for row, fields in map(_pending_row, of_service) if search.accepts(fields)]
    key_of = attrgetter("key")
    found = merged_page([rows], Listing(after=after, limit=PAGE_SIZE + 1), key_of, key_of)
    page = tuple(found[:PAGE_SIZE])
    return RowPage(page, page[-1].key if len(found) > PAGE_SIZE else None)


def _transaction_key(record: Any) -> _TransactionKey:
    return record["service_id"], record["mode"], record["transaction_id"]


def _match(search: SearchQuery) -> Mapping[str, object]:
    return {} if search.service_id is None else {"service_id": search.service_id}
