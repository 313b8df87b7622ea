"""Requests, transactions, callbacks and SMS under `/_sandbox/`: list, find and wait for them.

Every kind of record has the same routes: its list, one record, and `find`, `count` and `wait`.
The journal of requests can also be emptied.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from operator import itemgetter
from typing import Annotated, Any, Final, Literal, TypedDict, TypeVar

from aiohttp import web
from pydantic import Field

from sandbox_sim.control.record_search import (
    CALLBACKS,
    MESSAGES,
    REQUESTS,
    TRANSACTIONS,
    OpenTransactions,
    RecordIds,
    RecordKind,
    RecordSearch,
)
from sandbox_sim.production.attempt_views import LiveRecordReader, TransactionDetails
from sandbox_sim.records.callbacks import CallbackView
from sandbox_sim.records.listing import (
    ImpossibleValue,
    Listing,
    compiled_match,
    page_of_all,
)
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.web.control import errors
from sandbox_sim.web.control.errors import RequestRefused
from sandbox_sim.web.control.input import (
    AFTER,
    LARGEST_INTEGER,
    MAX_OPEN_S,
    BadInput,
    Deleted,
    Input,
    PageQuery,
    QuerySeconds,
    ServiceQuery,
    Text,
    Wait,
)
from sandbox_sim.web.routes import (
    Answer,
    Body,
    ErrorCode,
    H,
    ListOf,
    Query,
    Reply,
    Route,
    RouteGroup,
    route,
)
from sandbox_sim.web.transport.gateway_protocol import run_while_connected


async def wait_for_records(
    records: RecordSearch, kind: RecordKind, request: web.Request, body: Wait
) -> Reply:
    """Wait until `count` records match, and answer with them; HTTP 408 if too few came in time.

    The wait ends at once when the client closes the connection.
    """
    waiting = records.wait(kind, read_match(body, kind), body.count, body.timeout_s)
    task = await run_while_connected(request, waiting)
    if task.cancelled():
        raise RequestRefused(errors.DISCONNECTED, "The client closed the connection")
    outcome = task.result()
    if outcome.records is None:
        text = f"{outcome.matching} of {body.count} came within {body.timeout_s:g} s"
        raise RequestRefused(errors.TIMEOUT, text)
    return {kind.plural: outcome.records}


KINDS: Final = (REQUESTS, TRANSACTIONS, CALLBACKS, MESSAGES)

_NUMERIC_FILTERS: Final = frozenset(
    {"service_id", "char_count", "page_count", "units_charged", "http_status"}
)

T = TypeVar("T")


_BOOLEAN_FILTERS: Final = frozenset({"unacknowledged"})


class Search(Wait):
    """The body of `find`, `count` and `wait`.

    limit: how many to return at most; only `find` reads it.
    """

    limit: int = Field(100, ge=1, le=1000, description="an integer from 1 to 1000")


class RecordListQuery(PageQuery):
    """The query of the lists, in addition to a filter for each field."""

    after: Text | None = Field(None, description=AFTER)


class TransactionListQuery(RecordListQuery):
    """The query of the list of transactions."""

    waiting: Literal["true"] | None = Field(
        None, description="true, for transactions of mode P that wait for a person"
    )
    open_longer_than_s: QuerySeconds | None = Field(
        None,
        description=f"seconds, at most {MAX_OPEN_S}: for transactions that have been pending for "
        "longer",
    )


class ModeQuery(Input):
    """Chooses between two transactions with the same identifier, one of each mode."""

    mode: Literal["S", "P"] | None = Field(
        None, description="the service mode; without it one of mode S is shown first"
    )


class Count(TypedDict):
    """How many records match."""

    count: Annotated[int, "their number"]


def transaction_route(
    endpoint: str, summary: str, *refusals: ErrorCode, **fields: Any
) -> Callable[[H], H]:
    """Marks the handler of a transaction, named by any of its ids, of any service or of one.

    endpoint: the method, and `{}` for the path of the transaction. summary: with `{}` where the
    second route names the service.
    """
    path = "/_sandbox/transactions"

    def mark(handler: H) -> H:
        by_id, of_service = (*refusals, errors.AMBIGUOUS), (*refusals, errors.BAD_REQUEST)
        handler = route(
            endpoint.format(path + "/{service_id}/{id}"), summary.format(" of a service"),
            errors=of_service, **fields,
        )(handler)  # fmt: skip
        return route(
            endpoint.format(path + "/{id}"), summary.format(""), errors=by_id, **fields
        )(handler)  # fmt: skip

    return mark


@dataclass(frozen=True, eq=False)
class RecordRoutes(RouteGroup):
    """The routes of requests, transactions, callbacks and SMS."""

    records: RecordSearch
    ids: RecordIds
    pending: OpenTransactions
    live: LiveRecordReader | None = None

    group = "Transactions"

    def routes(self) -> list[Route]:
        """The routes of all kinds, and those of one kind."""
        return [each for kind in KINDS for each in self._routes_of(kind)] + super().routes()

    def _routes_of(self, kind: RecordKind) -> Sequence[Route]:
        plural, view = kind.plural, kind.view
        make_route = partial(Route, group="SMS" if plural == "sms" else plural.capitalize())
        path = f"/_sandbox/{plural}"
        search, query = search_body(Search, kind), list_query(kind)
        listed = view
        if kind is TRANSACTIONS:
            query, listed = query._replace(model=TransactionListQuery), TransactionDetails
        page = ListOf(plural, listed, has_dropped=kind is REQUESTS)
        routes = [
            make_route(
                "GET", path, partial(self.list, kind), f"list {plural}, newest first",
                answers=(Answer(page),), query=query, errors=(errors.NOT_FOUND,),
            ),
            make_route(
                "POST", f"{path}/find", partial(self.find, kind), f"find {plural}, newest first",
                answers=(Answer(ListOf(plural, view)),), body=search,
            ),
            make_route(
                "POST", f"{path}/count", partial(self.count, kind), f"count {plural}",
                answers=(Answer(Count),), body=search,
            ),
            make_route(
                "POST", f"{path}/wait", partial(self.wait, kind), f"wait for {plural}",
                answers=(Answer(ListOf(plural, view, has_next=False)),), body=search,
                errors=(errors.TIMEOUT,),
            ),
        ]  # fmt: skip
        if kind not in {TRANSACTIONS, CALLBACKS}:  # each of them is found by several ids
            routes.append(
                make_route(
                    "GET", f"{path}/{{id}}", partial(self.one, kind), f"show one of the {plural}",
                    answers=(Answer(view),),
                ),
            )  # fmt: skip
        return routes

    async def list(
        self, kind: RecordKind, request: web.Request, query: RecordListQuery
    ) -> dict[str, object]:
        """List records, newest first; `next` is the value of `after` for the next page."""
        if isinstance(query, TransactionListQuery):
            transactions = await self._waiting_or_open(query)
            if transactions is not None:
                return _filtered_page(request, query, transactions)
        page = await page_of(self.records, kind, request, query)
        if kind is REQUESTS:
            service_id = _filters(request, kind).get("service_id")
            service_id = service_id if isinstance(service_id, int) else None
            page["dropped"] = await self.records.dropped_requests(service_id)
        return page

    async def _waiting_or_open(
        self, query: TransactionListQuery
    ) -> Sequence[Mapping[str, Any]] | None:
        """The transactions that wait for a person or are open for long; None without a filter."""
        if query.waiting and query.open_longer_than_s is not None:
            raise BadInput("waiting and open_longer_than_s cannot be combined: give one of them")
        if query.waiting:
            return [] if self.live is None else await self.live.waiting()
        if query.open_longer_than_s is None:
            return None
        duration = timedelta(seconds=query.open_longer_than_s)
        return await self.pending.longer_than(duration)

    async def find(self, kind: RecordKind, _request: web.Request, body: Search) -> Reply:
        """Find the records that match, newest first."""
        found = await self.records.find(kind, read_match(body, kind), body.limit)
        return {kind.plural: found.records, "next": found.next}

    async def count(self, kind: RecordKind, _request: web.Request, body: Search) -> Count:
        """Count the records that match."""
        return {"count": await self.records.count(kind, read_match(body, kind))}

    async def wait(self, kind: RecordKind, request: web.Request, body: Search) -> Reply:
        """Wait until `count` records match; HTTP 408 after `timeout_s`."""
        return await wait_for_records(self.records, kind, request, body)

    async def one(self, kind: RecordKind, request: web.Request) -> Reply:
        """Show one record by its id."""
        name = request.match_info["id"]
        found = await self.records.find(kind, {kind.id_field: name}, limit=1)
        return require_found(next(iter(found.records), None), kind.plural, name)

    @transaction_route("GET {}", "show the transaction{} with this identifier, with its timeline",
                       answer=TransactionDetails)  # fmt: skip
    async def transaction(self, request: web.Request, query: ModeQuery) -> Reply:
        """Show the transaction with any of its ids, of any service or of the one in the path."""
        name, service_id = request.match_info["id"], service_of(request)
        found = None if query.mode == "P" else await self.ids.transaction(name, service_id)
        if found is None and query.mode != "S":
            found = await self.ids.transaction(name, service_id, ServiceMode.PRODUCTION)
        of_mode_s = query.mode == "S" or (found or {}).get("mode") == ServiceMode.SANDBOX
        if self.live is not None and not of_mode_s:
            network_id = name if found is None else str(found["network_transaction_id"])
            found = await self.live.transaction(network_id, service_id)
        return require_found(found, "transactions", name)

    @route("GET /_sandbox/callbacks/{id}",
           "show the callback with this identifier, with its attempts", group="Callbacks",
           answer=CallbackView, errors=(errors.AMBIGUOUS,))  # fmt: skip
    async def callback(self, request: web.Request) -> Reply:
        """Show the callback with this id, which may be any of its ids."""
        name = request.match_info["id"]
        return require_found(await self.ids.callback(name), "callbacks", name)

    @route("DELETE /_sandbox/requests",
           "empty the journal of one service or of all, except for requests of mode P",
           group="Requests")  # fmt: skip
    async def clear_requests(self, _request: web.Request, query: ServiceQuery) -> Deleted:
        """Empty the journal of the service in the query, or of all; mode P is kept."""
        return {"deleted": await self.records.clear_requests(query.service_id)}


def list_query(kind: RecordKind) -> Query:
    """The query of a list of records: every field of a record is a filter."""
    values = kind.values.items()
    accepted = {name: each.accepted for name, each in values if name not in _BOOLEAN_FILTERS}
    return Query(RecordListQuery, kind.fields, _NUMERIC_FILTERS, _BOOLEAN_FILTERS, accepted)


def search_body(model: type[Wait], kind: RecordKind) -> Body:
    """The body of a search for records of this kind."""
    return Body(model, optional=True, match_fields=kind.fields, match_schemas=kind.match_schemas)


async def page_of(
    records: RecordSearch, kind: RecordKind, request: web.Request, query: RecordListQuery
) -> dict[str, object]:
    """The page of a list for a query. Raises `UnknownAfter`."""
    found = await records.page(kind, _filters(request, kind), query.page_size, query.after)
    return {kind.plural: found.records, "next": found.next}


def _filtered_page(
    request: web.Request, query: TransactionListQuery, transactions: Sequence[Mapping[str, Any]]
) -> dict[str, object]:
    """A page of the transactions that pass the filters. Raises `UnknownAfter`."""
    accepts = compiled_match(_filters(request, TRANSACTIONS))
    id_of = itemgetter("network_transaction_id")
    listing = Listing(after=query.after, limit=len(transactions))
    found = [*filter(accepts, page_of_all(transactions, listing, id_of))]
    return query.page_view("transactions", found, id_of)


def _filters(request: web.Request, kind: RecordKind) -> dict[str, object]:
    query = request.query.items()
    match = {name: _filter_value(name, text) for name, text in query if name in kind.fields}
    return _resolve_match(kind, match)


def read_match(search: Wait, kind: RecordKind) -> dict[str, object]:
    """The `match` of a search, with words replaced by values.

    Raises `BadInput` for an unknown field, and for a value that no record can have.
    """
    unknown = [name for name in search.match if name.partition(".")[0] not in kind.fields]
    if unknown:
        known = ", ".join(kind.fields)
        raise BadInput(
            f"match: {', '.join(map(repr, unknown))} is not a field (the fields are {known})"
        )
    return _resolve_match(kind, search.match)


def _resolve_match(kind: RecordKind, match: Mapping[str, object]) -> dict[str, object]:
    try:
        return kind.parse_match(match)
    except ImpossibleValue as error:
        raise BadInput(str(error)) from None


def _filter_value(name: str, text: str) -> object:
    """A filter of a query as the JSON value that it stands for."""
    if name in _BOOLEAN_FILTERS:
        if text not in {"true", "false"}:
            raise BadInput(f"{name} must be true or false")
        return text == "true"
    if name not in _NUMERIC_FILTERS:
        return None if text == "null" else text
    return _parse_integer(name, text, 0)


def service_of(request: web.Request) -> int | None:
    """The `service_id` of a path, or None. Raises `BadInput`."""
    text = request.match_info.get("service_id")
    return None if text is None else _parse_integer("service_id in the path", text, 1)


def _parse_integer(name: str, text: str, minimum: int) -> int:
    is_integer = text.isascii() and text.isdigit()
    if not is_integer or not minimum <= int(text[:20]) <= LARGEST_INTEGER:
        raise BadInput(f"{name} must be an integer from {minimum} to {LARGEST_INTEGER}")
    return int(text)


def require_found(found: T | None, plural: str, name: str) -> T:
    """The record that was found by a name. Raises `RequestRefused` for None."""
    if found is None:
        raise not_found(plural, name)
    return found


def not_found(plural: str, name: str) -> RequestRefused:
    """HTTP 404 for a record that does not exist."""
    text = f"there is no {name!r} among the {plural}, or it was deleted"
    return RequestRefused(errors.NOT_FOUND, text)
