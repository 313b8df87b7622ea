"""The aiohttp application of the control API. Browsers get error pages in place of JSON errors."""

import json
import logging
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from aiohttp import hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler
from pydantic import BaseModel

from sandbox_sim.control.clock import ClockCannotGoBack
from sandbox_sim.control.record_search import AmbiguousId
from sandbox_sim.ledger.books import BadEntry
from sandbox_sim.overrides.behaviour import ChangeRefused
from sandbox_sim.payments.refunds import RefundRefused
from sandbox_sim.ports import StoreError
from sandbox_sim.production.decisions import CannotAsk, ForceNeeded, IllegalSettlement
from sandbox_sim.records.listing import UnknownAfter
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.web.api.dispatcher import encoding_problem, send_continue
from sandbox_sim.web.api.responses import StoreFailures
from sandbox_sim.web.control import errors
from sandbox_sim.web.control.access import Guard
from sandbox_sim.web.control.errors import RequestRefused, error_response
from sandbox_sim.web.control.input import BadInput, body_of, query_of
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import (
    JSON,
    NETWORKS_PREFIX,
    Access,
    ErrorCode,
    Reply,
    Route,
)
from sandbox_sim.web.transport.requests import is_client_disconnect, wants_page

log = logging.getLogger("sandbox_sim.requests")
# The error for each exception of a refusal; the text of the exception is the message.
_ERRORS: Final[Mapping[type[Exception], ErrorCode]] = {
    BadInput: errors.BAD_REQUEST,
    ChangeRefused: errors.BAD_REQUEST,
    UnknownAfter: errors.NOT_FOUND,
    AmbiguousId: errors.AMBIGUOUS,
    BadEntry: errors.ENTRY_REFUSED,
    RefundRefused: errors.NOT_REFUNDED,
    ForceNeeded: errors.FORCE_NEEDED,
    IllegalSettlement: errors.ALREADY_DECIDED,
    CannotAsk: errors.CANNOT_ASK,
    ClockCannotGoBack: errors.RECORDS_WAIT,
}

# The notifications of networks.
_NOTIFICATION_ROUTES: Final = [
    (method, f"{NETWORKS_PREFIX}/{{name}}/{{tail:.*}}")
    for method in (hdrs.METH_POST, hdrs.METH_PUT)
]


@dataclass(eq=False, repr=False)
class ControlApi:
    """Answers the requests to the control API, and the notifications of networks.

    prefixes: of the paths of the routes.
    notification_handler: for the notifications of networks; None without networks.
    """

    routes: Sequence[Route]
    guard: Guard
    prefixes: Sequence[str]
    notification_handler: Handler | None
    templates: Templates
    store_failures: StoreFailures

    def __post_init__(self) -> None:
        paths = [(each.method, each.path) for each in self.routes]
        if self.notification_handler is not None:
            paths += _NOTIFICATION_ROUTES
        self.router, router_routes = _router(tuple(paths), tuple(self.prefixes))
        repeated = [route for route in self.routes for _ in self.prefixes]
        # Behind those of `repeated` are the routes of notifications.
        self._routes = dict(zip(router_routes, repeated, strict=False))
        self._handlers: dict[web.AbstractRoute, Handler] = {}  # of routes that had a request

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request to one of its paths."""
        answer = await _with_error_format(request, self._answer, self.store_failures)
        return await _as_page_for_browser(request, answer, self.templates)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        match = await self.router.resolve(request)
        if match.http_exception is not None:
            raise match.http_exception
        request._match_info = match  # noqa: SLF001 -- named in aiohttp_internals.py
        await send_continue(request)
        return await self._handler(match.route)(request)

    def _handler(self, router_route: web.AbstractRoute) -> Handler:
        if router_route not in self._handlers:
            route = self._routes.get(router_route)
            handler = self.notification_handler if route is None else self._handler_of_route(route)
            self._handlers[router_route] = handler or _placeholder
        return self._handlers[router_route]

    def _handler_of_route(self, route: Route) -> Handler:
        """The handler of a route; a browser gets the page of the route, if it has one."""
        handler = self.guard.protect(route.access, _plain_handler(route))
        if route.page is None:
            return handler
        is_handset = route.access is Access.HANDSET
        page = self.guard.protect(Access.PAGE, route.page, with_handset_cookie=is_handset)

        async def page_or_plain(request: web.Request) -> web.StreamResponse:
            return await (page if wants_page(request) else handler)(request)

        return page_or_plain


def _plain_handler(route: Route) -> Handler:
    """The handler that reads the input and writes the answer."""
    handler, status = route.handler, route.answers[0].status

    async def plain(request: web.Request) -> web.StreamResponse:
        return _response(await handler(request), status)

    async def with_query(request: web.Request) -> web.StreamResponse:
        query = query_of(request, model, also_allowed=filters)
        return _response(await handler(request, query), status)

    async def with_body(request: web.Request) -> web.StreamResponse:
        body = await body_of(request, model, optional=optional)
        return _response(await handler(request, body), status)

    model: type[BaseModel]
    if route.query is not None:
        model, filters = route.query.model, route.query.filters
        return with_query
    if route.body is not None and route.body.media_type == JSON:
        model, optional = route.body.model, route.body.optional
        return with_body
    return plain


def _response(reply: Reply, status: int) -> web.StreamResponse:
    if isinstance(reply, web.StreamResponse):
        return reply
    return web.json_response(reply, status=status)


async def _as_page_for_browser(
    request: web.Request, answer: web.StreamResponse, templates: Templates
) -> web.StreamResponse:
    """The answer; a browser gets the message of a JSON error as a page."""
    is_error = answer.status >= 400 and answer.content_type == JSON
    if not (is_error and isinstance(answer, web.Response) and wants_page(request)):
        return answer
    message = json.loads(answer.text or "{}")["error"]["message"]
    title = HTTPStatus(answer.status).phrase
    page = await templates.message(request, title, message, status=answer.status)
    if hdrs.ALLOW in answer.headers:
        page.headers[hdrs.ALLOW] = answer.headers[hdrs.ALLOW]
    return page


async def _with_error_format(
    request: web.Request, answer: Handler, store_failures: StoreFailures
) -> web.StreamResponse:
    """Answer a request; errors get the format of the control API."""
    try:
        return _refuse_early(request) or await answer(request)
    except RequestRefused as refused:
        return error_response(refused.error, str(refused))
    except tuple(_ERRORS) as refused:
        return error_response(_ERRORS[type(refused)], str(refused), getattr(refused, "field", ""))
    except (HttpProcessingError, web.RequestPayloadError):
        return error_response(errors.BAD_REQUEST, "The body does not match its headers")
    except StoreError as failure:
        return error_response(errors.STORE_UNAVAILABLE, store_failures.reason(failure))
    except web.HTTPException as failure:
        if failure.status < 400:
            raise
        return _error_of_http_exception(failure, request)
    except Exception as fault:
        if is_client_disconnect(fault, request):
            raise
        log.exception("%s failed", redact_text(f"{request.method} {request.path}"))
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has already begun") from None
        return error_response(
            errors.INTERNAL_ERROR, "An internal error of the server; its log has the traceback"
        )


def _refuse_early(request: web.Request) -> web.Response | None:
    """The answer to a request with a NUL in its path or an encoded body; else None."""
    if "\x00" in request.path:  # some stores refuse it in a query
        return _error_of_http_exception(web.HTTPNotFound(), request)
    why = encoding_problem(request.headers)
    return None if why is None else error_response(errors.ENCODED_BODY, why)


def _error_of_http_exception(failure: web.HTTPException, request: web.Request) -> web.Response:
    """An HTTP error of aiohttp, in the error format of the control API."""
    match failure:
        case web.HTTPNotFound():
            return error_response(errors.NOT_FOUND, f"The control API has no path {request.path!r}")
        case web.HTTPMethodNotAllowed():
            allowed = failure.headers[hdrs.ALLOW]
            text = f"This path takes {allowed}, not {request.method}"
            answer = error_response(errors.METHOD_NOT_ALLOWED, text)
            answer.headers[hdrs.ALLOW] = allowed
            return answer
        case web.HTTPRequestEntityTooLarge():
            limit = request.client_max_size
            text = f"The body is larger than the setting max_body_bytes allows: {limit} bytes"
            answer = error_response(errors.BODY_TOO_LARGE, text)
            answer.force_close()  # the body is not read: it would be read as the next request
            return answer
    code = failure.reason.lower().replace(" ", "_")
    return error_response(ErrorCode(failure.status, code, ""), failure.reason)


@lru_cache
def _router(
    routes: Sequence[tuple[str, str]], prefixes: Sequence[str]
) -> tuple[web.UrlDispatcher, Sequence[web.AbstractRoute]]:
    """The router for these methods and paths, each under each prefix, and its routes in order.

    All gateways with the same paths share it, since it takes milliseconds to make.
    """
    router = web.UrlDispatcher()
    paths = _router_paths([path for _, path in routes])
    router_routes = [
        router.add_route(method, prefix + path, _placeholder)
        for (method, _), path in zip(routes, paths, strict=True)
        for prefix in prefixes
    ]
    return router, router_routes


async def _placeholder(_request: web.Request) -> web.StreamResponse:
    """Stand in for a handler in the router; each gateway calls a handler of its own."""
    raise NotImplementedError


def _router_paths(paths: Sequence[str]) -> list[str]:
    """Each path for the router. A variable part at the end excludes fixed siblings.

    So `GET /_sandbox/callbacks/find` gets HTTP 405 and does not search for a callback named find.
    """
    names: defaultdict[str, set[str]] = defaultdict(set)  # by the path before them
    for path in paths:
        parent, _, last = path.rpartition("/")
        if re.fullmatch(r"\w+", last):
            names[parent].add(last)
    return [_router_path(path, names) for path in paths]


def _router_path(path: str, names: Mapping[str, Collection[str]]) -> str:
    parent, _, last = path.rpartition("/")
    if parent not in names or not re.fullmatch(r"{\w+}", last):
        return path
    return f"{parent}/{last[:-1]}:(?!(?:{'|'.join(sorted(names[parent]))})$)[^{{}}/]+}}"
