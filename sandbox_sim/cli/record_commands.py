"""The kinds of record: their filters and columns, and their commands list, show, find and wait."""

from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import click

from sandbox_sim.cli import tables
from sandbox_sim.cli.client import REQUEST_TIMEOUT_S, CommandFailed, Session, with_session
from sandbox_sim.cli.options import (
    DURATION,
    FIND_LIMIT,
    LIST_LIMIT,
    Filter,
    Query,
    list_options,
    match_options,
    parse_match,
    wait_options,
)
from sandbox_sim.cli.tables import Columns, Json, fields
from sandbox_sim.records.transactions import status_words
from sandbox_sim.values.timestamps import iso

_MAX_PAGES: Final = 20_000


class RecordView(NamedTuple):
    """How one kind of record is shown.

    plural: its name in paths and answers. label: its name in messages.
    optional: columns that are left out if every cell is None.
    of_lists: additional filters of `list`.
    whole: whether long cells are printed in full.
    """

    plural: str
    label: str
    filters: Sequence[Filter]
    columns: Columns
    optional: Columns = MappingProxyType({})
    list_filters: Sequence[Filter] = ()
    full_cells: bool = False

    def lines(self, records: Sequence[Json]) -> Iterator[str]:
        """The records as a table, or a line such as `no requests`."""
        shorten = not self.full_cells
        return tables.listing(records, self.label, self.columns, self.optional, shorten=shorten)

    def page(self, document: Json) -> Iterator[str]:
        """The records of a page, and how to see the next one."""
        yield from self.lines(document[self.plural])
        yield from tables.next_page_line(document)


def last_verdict(callback: Json) -> str | None:
    """The verdict on the last attempt; None if there was no attempt."""
    return callback["attempts"][-1]["verdict"] if callback["attempts"] else None


def _reasons(transaction: Json) -> Sequence[str]:
    """Why a transaction of mode P waits for a person, or else why it is open."""
    return transaction.get("waiting") or transaction.get("open_because") or ()


_SERVICE: Final = Filter("service_id", "records of this service")
_TRANSACTION: Final = Filter("transaction_id", "records of this transaction")
_MODE: Final = Filter("mode", "records of this mode, S or P")
_OPERATION: Final = Filter("operation", "records of this operation")
_OF_REQUESTS: Final = "requests answered with this"
_OF_STATUS: Final = "transactions of this status: 000, 001, 002, 003, or a word such as failed"
_IN_STATE: Final = "callbacks in this state: pending, retrying, delivered, failed or dropped"
_UNACKNOWLEDGED: Final = "callbacks that were tried and not acknowledged: retrying or failed"
_WAITING: Final = "transactions of mode P that wait for a person, with the reason"
_OPEN: Final = "transactions that are pending for longer than this, such as 10m, with the reason"

REQUESTS: Final = RecordView(
    "requests",
    "requests",
    (
        *(_SERVICE, _TRANSACTION, _OPERATION),
        Filter("response_code", f"{_OF_REQUESTS} response code", ("--response-code", "--code")),
        Filter("http_status", f"{_OF_REQUESTS} HTTP status", ("--status",)),
        Filter("mode", "requests of this mode: S, P or null"),
    ),
    fields(
        *("time=at", "id", "service=service_id", "mode", "path", "transaction=transaction_id"),
        *("http=http_status", "code=response_code", "rule", "why"),
    ),
)
TRANSACTIONS: Final = RecordView(
    "transactions",
    "transactions",
    (_SERVICE, _TRANSACTION, _OPERATION, Filter("status", _OF_STATUS), _MODE),
    {
        "time": lambda record: record["timeline"][0]["at"],
        **fields("service=service_id", "transaction=transaction_id", "operation"),
        "amount": lambda record: f"{record['amount']} {record['currency_code']}",
        **fields("nw", "party"),
        "status": lambda record: status_words(record["status"]),
    },
    {
        "mode": lambda record: "P" if record["mode"] == "P" else None,
        "status query": lambda record: (
            "replaced" if record["replaced_by"] else "expired" if record["expired"] else None
        ),
        "waits because": lambda record: "; ".join(_reasons(record)) or None,
    },
    (
        Filter("waiting", _WAITING, switch=True),
        Filter("open_longer_than_s", _OPEN, ("--open-longer-than",), type=DURATION),
    ),
)
CALLBACKS: Final = RecordView(
    "callbacks",
    "callbacks",
    (
        *(_SERVICE, _TRANSACTION, Filter("state", _IN_STATE, ("--status", "--state"))),
        *(Filter("unacknowledged", _UNACKNOWLEDGED, switch=True), _MODE),
    ),
    {
        **fields("time=created_at", "id", "service=service_id", "transaction=transaction_id"),
        **fields("state"),
        "attempts": lambda record: len(record["attempts"]),
        "last attempt": last_verdict,
        **fields("url"),
    },
)
MESSAGES: Final = RecordView(
    "sms",
    "messages",
    (
        *(_SERVICE, Filter("status", "messages of this status, such as SENT")),
        Filter("customer_number", "messages to this number, in local or 233 form"),
        *(Filter("batch_id", "messages of this bulk send"), _MODE),
    ),
    fields(
        *("time=created_at", "id=processing_id", "service=service_id", "to=customer_number"),
        *("status", "units=units_charged", "sender=sender_id", "message"),
    ),
)
DELIVERIES: Final = RecordView(
    "messages", "deliveries", (), fields("time=at", "method", "signature", "body"), full_cells=True
)


def every_record(session: Session, plural: str, query: Query) -> Iterator[dict[str, Any]]:
    """All records of a list, page by page. Raises `CommandFailed` if there are too many pages."""
    after: str | None = None
    for _ in range(_MAX_PAGES):
        page_query = [*query, ("limit", LIST_LIMIT), ("after", after)]
        page = session.gateway.control("GET", plural, query=page_query).document
        yield from page[plural]
        if page["next"] is None or not page[plural]:
            return
        after = page["next"]
    raise CommandFailed(f"{session.gateway.address} has more than {_MAX_PAGES} pages of {plural}")


def add_searches(group: click.Group, kind: RecordView) -> None:
    """Add `list`, `find` and `wait`."""
    for add in (_add_list, _add_find, _add_wait):
        add(group, kind)


def _add_list(group: click.Group, kind: RecordView) -> None:
    """Add `list`, which shows a page of records, newest first."""

    @group.command("list", help=f"List {kind.label}, newest first, one per line.")
    @list_options([*kind.filters, *kind.list_filters])
    @with_session
    def _list(session: Session, query: Query) -> None:
        def lines(document: Mapping[str, Any]) -> Iterator[str]:
            yield from kind.page(document)
            if document.get("dropped"):
                yield f"{document['dropped']} older requests were deleted to make room"
            if dict(query).get("state") == "failed" and not document[kind.plural]:
                yield from _retrying_line(session, query)
            yield from _clock_line(session)

        session.request("GET", kind.plural, query=query, lines=lines)


def _retrying_line(session: Session, query: Query) -> Iterator[str]:
    """The line about retrying callbacks, because a user may mean these by failed ones."""
    chosen = {name: str(value) for name, value in query if name not in {"limit", "after"}}
    body = {"match": parse_match([*(chosen | {"state": "retrying"}).items()])}
    count = session.gateway.control("POST", "callbacks", "count", body=body).document["count"]
    if count:
        who = "1 callback is" if count == 1 else f"{count} callbacks are"
        yield f"{who} retrying: `sandbox-sim callbacks list --unacknowledged`"


def _clock_line(session: Session) -> Iterator[str]:
    """The line with gateway time and the machine's time; none if they are the same."""
    answer = session.gateway.control("GET", "clock")
    clock = answer.document
    if clock["frozen"] or clock["shift_s"]:
        machine = parsedate_to_datetime(answer.headers["date"])
        yield f"gateway time is {clock['now']}, the machine's time is {iso(machine)}"


def add_show(group: click.Group, kind: RecordView, metavar: str, id_help: str = "") -> None:
    """Add `show`, which shows all fields of one record. named: a sentence about its id."""
    text = f"Show one of the {kind.label} with all its fields.\n\n{id_help}".strip()

    @group.command("show", help=text)
    @click.argument("name", metavar=metavar)
    @with_session
    def _show(session: Session, name: str) -> None:
        session.request("GET", kind.plural, name, lines=tables.outline)


def _add_find(group: click.Group, kind: RecordView) -> None:
    """Add `find`, which shows the records that match."""

    def lines(document: Mapping[str, Any]) -> Iterator[str]:
        yield from kind.lines(document[kind.plural])
        if document["next"] is not None:
            yield "more may match; raise --limit"

    @group.command("find", help=f"Find {kind.label} by any field, such as request.amount.")
    @match_options(kind.filters)
    @click.option(
        "--limit",
        "--count",
        "limit",
        type=FIND_LIMIT,
        default=100,
        help="How many records at most.",
    )
    @with_session
    def _find(session: Session, match: Mapping[str, object], limit: int) -> None:
        body = {"match": match, "limit": limit}
        session.request("POST", kind.plural, "find", body=body, lines=lines)


def _add_wait(group: click.Group, kind: RecordView) -> None:
    """Add `wait`, which waits until `--count` records match, and shows them."""

    @group.command("wait", help=f"Wait until {kind.label} match, and show them.")
    @match_options(kind.filters)
    @wait_options
    @with_session
    def _wait(session: Session, match: Mapping[str, object], count: int, timeout: float) -> None:
        wait(session, kind, kind.plural, match=match, count=count, timeout_s=timeout)


def wait(
    session: Session, kind: RecordView, *path: str, match: object, count: int, timeout_s: float
) -> None:
    """Wait until `count` records match, and show them. path: the path of their list."""
    session.request(
        *("POST", *path, "wait"),
        body={"match": match, "count": count, "timeout_s": timeout_s},
        timeout_s=timeout_s + REQUEST_TIMEOUT_S,
        lines=lambda document: kind.lines(document[kind.plural]),
    )
