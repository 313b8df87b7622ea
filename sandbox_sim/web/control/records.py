"""Requests, transactions, callbacks and messages under `/_sandbox/`: found, awaited, steered.

Every kind of record has the same routes: its list, one of it, and `find`, `count` and `wait`.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeVar

from aiohttp import web
from pydantic import Field

from sandbox_sim.domain.callbacks import callbacks
from sandbox_sim.domain.control.field_values import ImpossibleValue
from sandbox_sim.domain.payments import transactions
from sandbox_sim.domain.payments.transactions import Status
from sandbox_sim.gateway.control.manual_actions import ManualActions
from sandbox_sim.gateway.control.record_ids import RecordIds
from sandbox_sim.gateway.control.record_search import (
    CALLBACKS,
    MESSAGES,
    REQUESTS,
    TRANSACTIONS,
    Records,
)
from sandbox_sim.gateway.control.searches import Kind
from sandbox_sim.http_addresses import EXPECTED
from sandbox_sim.web.api.address_fields import WebAddress
from sandbox_sim.web.control.control_input import (
    LARGEST_INTEGER,
    SERVICE_ID,
    BadInput,
    Guard,
    Input,
    PageQuery,
    Routes,
    ServiceQuery,
    Wait,
    body_of,
    error,
    query_of,
)
from sandbox_sim.web.control.status_words import StatusWord, worded
from sandbox_sim.web.transport.disconnection import answer_of_wait

W = TypeVar("W", bound=Wait)

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "requests": REQUESTS,
        "transactions": TRANSACTIONS,
        "callbacks": CALLBACKS,
        "sms": MESSAGES,
    }
)
_NUMBERS: Final = frozenset(
    {"service_id", "char_count", "page_count", "units_charged", "http_status"}
)
_SWITCHES: Final = frozenset({"unacknowledged"})
_SETTLED: Final = ("000", "001", "003")


class Search(Wait):
    """What `find`, `count` and `wait` take."""

    limit: int = Field(100, ge=1, le=1000, description="an integer from 1 to 1000")


class RecordListQuery(PageQuery):
    """What the lists take, beside a filter for each field."""

    # NUL is refused because no database takes it.
    after: str | None = Field(
        None,
        pattern=r"^[^\x00]*$",
        description="the id after which the list goes on, without NUL",
    )


class ResetBody(Input):
    """What `reset` takes: one service, or nothing for all."""

    service_id: int | None = Field(None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)


class SettleBody(Input):
    """What `settle` takes."""

    status: Annotated[str, StatusWord] = Field(
        pattern=f"^({'|'.join(_SETTLED)})$", description=f"one of {worded(_SETTLED)}"
    )


class ResendBody(Input):
    """What `resend` takes; without `url` the callback goes where it went before."""

    url: WebAddress | None = Field(None, description=EXPECTED)


class RecordRoutes:
    """What the gateway has done, for whoever holds the control token."""

    def __init__(
        self, records: Records, ids: RecordIds, manual_actions: ManualActions, guard: Guard
    ) -> None:
        self._records = records
        self._ids = ids
        self._manual_actions = manual_actions
        self._guard = guard

    def routes(self) -> Routes:
        """The route table."""
        by_hand: Routes = [
            ("POST", "/_sandbox/reset", self.reset),
            ("GET", "/_sandbox/requests/{name}", partial(self.one, "requests")),
            ("DELETE", "/_sandbox/requests", self.clear_requests),
            ("GET", "/_sandbox/transactions/{name}", self.transaction),
            ("GET", "/_sandbox/transactions/{service_id}/{name}", self.transaction),
            ("POST", "/_sandbox/transactions/{name}/settle", self.settle),
            ("POST", "/_sandbox/transactions/{service_id}/{name}/settle", self.settle),
            ("GET", "/_sandbox/callbacks/{name}", self.callback),
            ("POST", "/_sandbox/callbacks/{name}/resend", self.resend),
            ("GET", "/_sandbox/sms/{name}", partial(self.one, "sms")),
        ]
        of_each: Routes = [
            (method, f"/_sandbox/{plural}{path}", partial(handler, plural))
            for plural in KINDS
            for method, path, handler in (
                ("GET", "", self.list),
                ("POST", "/find", self.find),
                ("POST", "/count", self.count),
                ("POST", "/wait", self.wait),
            )
        ]
        return [(method, path, self._guard(do)) for method, path, do in (*of_each, *by_hand)]

    async def list(self, plural: str, request: web.Request) -> web.Response:
        """Newest first; `next` is what to send as `after` for those that follow."""
        kind = KINDS[plural]
        shown = await page_of(self._records, kind, plural, request)
        if kind is REQUESTS:
            service_id = _filters(request, kind).get("service_id")
            of_one = service_id if isinstance(service_id, int) else None
            shown["dropped"] = await self._records.dropped_requests(of_one)
        return web.json_response(shown)

    async def clear_requests(self, request: web.Request) -> web.Response:
        """Empty the journal, of the service in the query if there is one."""
        asked = query_of(request, ServiceQuery)
        return web.json_response({"deleted": await self._records.clear_requests(asked.service_id)})

    async def reset(self, request: web.Request) -> web.Response:
        """Begin anew: all that was done for one service, or for all, is forgotten."""
        asked = await body_of(request, ResetBody, optional=True)
        await self._manual_actions.reset(asked.service_id)
        return web.json_response({"service_id": asked.service_id})

    async def find(self, plural: str, request: web.Request) -> web.Response:
        """Those that match, newest first."""
        kind = KINDS[plural]
        search = await search_of(request, kind, Search)
        found = await self._records.find(kind, search.match, search.limit)
        return web.json_response({plural: found.records, "next": found.next})

    async def count(self, plural: str, request: web.Request) -> web.Response:
        """How many match."""
        kind = KINDS[plural]
        search = await search_of(request, kind, Search)
        return web.json_response({"count": await self._records.count(kind, search.match)})

    async def wait(self, plural: str, request: web.Request) -> web.Response:
        """Those that match, as soon as there are `count` of them; HTTP 408 after `timeout_s`."""
        kind = KINDS[plural]
        search = await search_of(request, kind, Search)
        waiting = self._records.wait(kind, search.match, search.count, search.timeout_s)
        return await answer_of_wait(request, waiting, search, plural)

    async def one(self, plural: str, request: web.Request) -> web.Response:
        """One record by its id."""
        kind = KINDS[plural]
        name = request.match_info["name"]
        found = await self._records.find(kind, {kind.name: name}, limit=1)
        return web.json_response(found.records[0]) if found.records else _no_such(plural, name)

    async def callback(self, request: web.Request) -> web.Response:
        """The callback that any of its ids names."""
        name = request.match_info["name"]
        found = await self._ids.callback(name)
        return _no_such("callbacks", name) if found is None else web.json_response(found)

    async def transaction(self, request: web.Request) -> web.Response:
        """The transaction that any of its ids names, of any service or the one in the path."""
        name = request.match_info["name"]
        found = await self._ids.transaction(name, _service_in_path(request))
        return _no_such("transactions", name) if found is None else web.json_response(found)

    async def settle(self, request: web.Request) -> web.Response:
        """Decide a pending transaction now; HTTP 409 for one that is decided."""
        name, service_id = request.match_info["name"], _service_in_path(request)
        to = Status((await body_of(request, SettleBody)).status)
        found: Any = await self._ids.transaction(name, service_id)
        if found is None:
            return _no_such("transactions", name)
        ids = found["service_id"], found["network_transaction_id"]
        settled = await self._manual_actions.settle(*ids, to)
        if settled is None:
            return _no_such("transactions", name)
        if not settled.was_pending:
            text = f"the transaction has status {settled.transaction.status} and keeps it"
            return error(409, "already_decided", text)
        return web.json_response(transactions.shown(settled.transaction))

    async def resend(self, request: web.Request) -> web.Response:
        """Send a callback once more, now; its attempts tell what comes of it."""
        name = request.match_info["name"]
        url = (await body_of(request, ResendBody, optional=True)).url
        found = await self._ids.callback(name)
        callback = found and await self._manual_actions.resend(str(found["id"]), url)
        if not callback:
            return _no_such("callbacks", name)
        return web.json_response(callbacks.shown(callback), status=202)


async def page_of(
    records: Records, kind: Kind, plural: str, request: web.Request
) -> dict[str, object]:
    """The page of a list that a query asks for; any field of the records is a filter."""
    asked = query_of(request, RecordListQuery, beside=kind.fields)
    found = await records.find(kind, _filters(request, kind), asked.page_size, asked.after)
    return {plural: found.records, "next": found.next}


def _filters(request: web.Request, kind: Kind) -> dict[str, object]:
    given = request.query.items()
    return _read(kind, {name: _value(name, text) for name, text in given if name in kind.fields})


async def search_of(request: web.Request, kind: Kind, model: type[W]) -> W:
    """The body of a search; `match` can name what a record has, and what is inside its fields."""
    search = await body_of(request, model, optional=True)
    unknown = [name for name in search.match if name.partition(".")[0] not in kind.fields]
    if unknown:
        known = ", ".join(kind.fields)
        raise BadInput(f"match: {', '.join(map(repr, unknown))} is no field (there are {known})")
    return search.model_copy(update={"match": _read(kind, search.match)})


def _read(kind: Kind, match: Mapping[str, object]) -> dict[str, object]:
    try:
        return kind.read(match)
    except ImpossibleValue as error:
        raise BadInput(str(error)) from None


def _value(name: str, text: str) -> object:
    """A filter of a query as the value that it stands for."""
    if name in _SWITCHES:
        if text not in {"true", "false"}:
            raise BadInput(f"{name} must be true or false")
        return text == "true"
    if name not in _NUMBERS:
        return None if text == "null" else text
    if not text.isascii() or not text.isdigit() or int(text[:20]) > LARGEST_INTEGER:
        raise BadInput(f"{name} must be an integer from 0 to {LARGEST_INTEGER}")
    return int(text)


def _service_in_path(request: web.Request) -> int | None:
    """The service that a path names, or None where it names none."""
    text = request.match_info.get("service_id")
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:20]) <= LARGEST_INTEGER:
        raise BadInput(f"service_id in the path must be an integer from 1 to {LARGEST_INTEGER}")
    return int(text)


def _no_such(plural: str, name: str) -> web.Response:
    return error(404, "not_found", f"{plural} has no {name!r}, or has it no more")
