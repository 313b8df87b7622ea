"""The aiohttp application of the control API. Browsers get error pages in place of JSON errors."""

import json
import logging
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from http import HTTPStatus
from itertools import product
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
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.web.api.dispatcher import encoded_body, expect
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
from sandbox_sim.web.transport.requests import is_goodbye, wants_page

log = logging.getLogger("sandbox_sim.requests")
# The error for each refusal of the rooms; its text is the message.
_REFUSALS: Final[Mapping[type[Exception], ErrorCode]] = {
    BadInput: errors.BAD_REQUEST,
    ChangeRefused: errors.BAD_REQUEST,
    AmbiguousId: errors.AMBIGUOUS,
    BadEntry: errors.ENTRY_REFUSED,
    RefundRefused: errors.NOT_REFUNDED,
    ForceNeeded: errors.FORCE_NEEDED,
    IllegalSettlement: errors.ALREADY_DECIDED,
    CannotAsk: errors.CANNOT_ASK,
    ClockCannotGoBack: errors.RECORDS_WAIT,
}


class ControlApi:
    """Answers the requests to the control API, and the notifications of networks.

    prefixes: of the paths of the routes.
    notified: handles the notifications of networks; None without networks.
    """

    def __init__(
        self,
        routes: Sequence[Route],
        guard: Guard,
        prefixes: Iterable[str],
        notified: Handler | None,
        templates: Templates,
        store_failures: StoreFailures,
    ) -> None:
        self.routes = routes
        self.application = _application(routes, guard, prefixes, notified)
        self._templates = templates
        self._store_failures = store_failures

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request to one of its paths."""
        answer = await _in_shape(request, self.application, self._store_failures)
        return await _for_browser(request, answer, self._templates)


def _application(
    table: Sequence[Route], guard: Guard, prefixes: Iterable[str], notified: Handler | None
) -> web.Application:
    """The routes under each of the prefixes. No middlewares: with them aiohttp would keep it."""
    app = web.Application()
    if notified is not None:
        for prefix, method in product(prefixes, (hdrs.METH_POST, hdrs.METH_PUT)):
            path = f"{prefix}{NETWORKS_PREFIX}/{{name}}/{{tail:.*}}"
            app.router.add_route(method, path, notified, expect_handler=expect)
    for route, path in zip(table, _router_paths(table), strict=True):
        handler = _handler_of_route(route, guard)
        for prefix in prefixes:
            app.router.add_route(route.method, prefix + path, handler, expect_handler=expect)
    return app


def _handler_of_route(route: Route, guard: Guard) -> Handler:
    """The handler of a route; a browser gets the page of the route, if it has one."""
    handler = _plain_handler(route, guard)
    if route.page is None:
        return handler
    of_handset = route.access is Access.HANDSET
    page = guard.protect(Access.PAGE, route.page, with_handset_cookie=of_handset)

    async def for_browsers_too(request: web.Request) -> web.StreamResponse:
        return await (page if wants_page(request) else handler)(request)

    return for_browsers_too


def _plain_handler(route: Route, guard: Guard) -> Handler:
    """The handler that checks access, reads the input and writes the answer."""
    handler, status = route.handler, route.answers[0].status

    async def plain(request: web.Request) -> web.StreamResponse:
        return _response(await handler(request), status)

    async def with_query(request: web.Request) -> web.StreamResponse:
        return _response(await handler(request, query_of(request, model, beside=beside)), status)

    async def with_body(request: web.Request) -> web.StreamResponse:
        asked = await body_of(request, model, optional=optional)
        return _response(await handler(request, asked), status)

    model: type[BaseModel]
    if route.query is not None:
        model, beside = route.query.model, route.query.filters
        return guard.protect(route.access, with_query)
    if route.body is not None and route.body.media_type == JSON:
        model, optional = route.body.model, route.body.optional
        return guard.protect(route.access, with_body)
    return guard.protect(route.access, plain)


def _response(reply: Reply, status: int) -> web.StreamResponse:
    if isinstance(reply, web.StreamResponse):
        return reply
    return web.json_response(reply, status=status)


async def _for_browser(
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


async def _in_shape(
    request: web.Request, control: web.Application, store_failures: StoreFailures
) -> web.StreamResponse:
    """Answer a request; failures get the error format of the control API."""
    try:
        return _refused_at_once(request) or await control._handle(request)  # noqa: SLF001 -- named in aiohttp_internals.py
    except RequestRefused as refused:
        return error_response(refused.error, str(refused))
    except tuple(_REFUSALS) as refused:
        return error_response(_REFUSALS[type(refused)], str(refused), getattr(refused, "field", ""))
    except (HttpProcessingError, web.RequestPayloadError):
        return error_response(errors.BAD_REQUEST, "The body does not match its headers")
    except StoreError as failure:
        return error_response(errors.STORE_UNAVAILABLE, store_failures.reason(failure))
    except web.HTTPException as failure:
        if failure.status < 400:
            raise
        return _refusal(failure, request)
    except Exception as fault:
        if is_goodbye(fault, request):
            raise
        log.exception("%s failed", redact_text(f"{request.method} {request.path}"))
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has already begun") from None
        return error_response(
            errors.INTERNAL_ERROR, "An internal error of the server; its log has the traceback"
        )


def _refused_at_once(request: web.Request) -> web.Response | None:
    """The answer to a request with a NUL in its path or an encoded body; else None."""
    if "\x00" in request.path:  # some stores refuse it in a query
        return _refusal(web.HTTPNotFound(), request)
    why = encoded_body(request.headers)
    return None if why is None else error_response(errors.ENCODED_BODY, why)


def _refusal(failure: web.HTTPException, request: web.Request) -> web.Response:
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
            text = "The body is larger than the setting max_body_bytes allows"
            return error_response(errors.BODY_TOO_LARGE, text)
    code = failure.reason.lower().replace(" ", "_")
    return error_response(ErrorCode(failure.status, code, ""), failure.reason)


def _router_paths(table: Sequence[Route]) -> list[str]:
    """The path of each route for the router. A variable part at the end excludes fixed siblings.

    So `GET /_sandbox/callbacks/find` gets HTTP 405 and does not search for a callback named find.
    """
    names: defaultdict[str, set[str]] = defaultdict(set)  # by the path before them
    for route in table:
        parent, _, last = route.path.rpartition("/")
        if re.fullmatch(r"\w+", last):
            names[parent].add(last)
    return [_router_path(route, names) for route in table]


def _router_path(route: Route, names: Mapping[str, Collection[str]]) -> str:
    parent, _, last = route.path.rpartition("/")
    if parent not in names or not re.fullmatch(r"{\w+}", last):
        return route.path
    return f"{parent}/{last[:-1]}:(?!(?:{'|'.join(sorted(names[parent]))})$)[^{{}}/]+}}"
