"""From the table of routes to the handlers that aiohttp's router calls."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import BaseModel

from sandbox_sim.web.browser import wants_page
from sandbox_sim.web.control.access import Guard
from sandbox_sim.web.control.input_parsing import body_of, query_of
from sandbox_sim.web.routes import JSON, Access, Route

# A handler returns the JSON of its first answer, or a whole response for any other answer.
Reply = Mapping[str, object] | web.StreamResponse


class RouteGroup(Protocol):
    """The routes of one resource."""

    def routes(self) -> Iterable[Route]:
        """The part of the table that it has."""
        ...


def aiohttp_handler(route: Route, guard: Guard) -> Handler:
    """The handler of a route; a browser gets the page of the route, if it has one."""
    handler = _handler_of(route, guard)
    if route.page is None:
        return handler
    of_handset = route.access is Access.HANDSET
    page = guard.protect(Access.PAGE, route.page, with_handset_cookie=of_handset)

    async def for_browsers_too(request: web.Request) -> web.StreamResponse:
        return await (page if wants_page(request) else handler)(request)

    return for_browsers_too


def _handler_of(route: Route, guard: Guard) -> Handler:
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
