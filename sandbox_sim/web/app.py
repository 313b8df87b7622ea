"""The aiohttp application: routes for the control API; the rest goes to the dispatcher.

It is served by `server.GatewayRunner`, which asks the router only for paths that begin with `OURS`.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable

from aiohttp import hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from sandbox_sim.domain.redaction import redact_text
from sandbox_sim.gateway.control.record_ids import AmbiguousId
from sandbox_sim.gateway.ports import StoreError
from sandbox_sim.web.api.dispatcher import Dispatcher, expect
from sandbox_sim.web.control.control_input import BadInput, RouteGroup, error as control_error
from sandbox_sim.web.transport.client_connections import ClientConnections

log = logging.getLogger("sandbox_sim.requests")

CONTROL_PREFIX = "/_sandbox"
DISPATCHER = web.AppKey("FRONTDOOR", Dispatcher)
# What a path begins with that is ours, with and without the base path.
OURS = web.AppKey("OURS", tuple[str, ...])
# What `client_max_size` was made with; aiohttp tells it to requests only.
MAX_BODY_BYTES = web.AppKey("MAX_BODY_BYTES", int)
# Whether plain requests go past aiohttp's protocol.
FAST_PATH = web.AppKey("FAST_PATH", bool)
CLIENTS = web.AppKey("CLIENTS", ClientConnections)
# Waits for the callbacks on the wire before the server stops, at most so many seconds.
DRAIN: web.AppKey[Callable[[float], Awaitable[None]]] = web.AppKey("DRAIN")


def make_app(
    dispatcher: Dispatcher,
    route_groups: Iterable[RouteGroup],
    *,
    clients: ClientConnections,
    drain: Callable[[float], Awaitable[None]],
    base_path: str,
    max_body_bytes: int,
    fast_path: bool,
) -> web.Application:
    """Assemble the application; `base_path` is empty or begins with a slash."""
    app = web.Application(client_max_size=max_body_bytes, middlewares=[_in_shape])
    prefixes = dict.fromkeys(("", base_path))
    app[DISPATCHER] = dispatcher
    app[CLIENTS] = clients
    app[DRAIN] = drain
    app[MAX_BODY_BYTES] = max_body_bytes
    app[FAST_PATH] = fast_path
    app[OURS] = tuple(f"{prefix}{CONTROL_PREFIX}/" for prefix in prefixes)
    for face in route_groups:
        for method, path, handler in face.routes():
            for prefix in prefixes:
                app.router.add_route(method, prefix + path, handler, expect_handler=expect)
    return app


def is_goodbye(error: BaseException | None, request: web.BaseRequest) -> bool:
    """Whether an error says no more than that the client went away before it had its answer."""
    transport = request.transport
    return isinstance(error, ConnectionError) and (transport is None or transport.is_closing())


@web.middleware
async def _in_shape(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Failures under `/_sandbox` in the shape of the control API."""
    if "\x00" in request.path:  # nothing has such a name, and not every store can be asked for one
        return _refusal(web.HTTPNotFound(), request)
    try:
        return await handler(request)
    except (BadInput, AmbiguousId) as bad:
        status, code = (409, "ambiguous") if isinstance(bad, AmbiguousId) else (400, "bad_request")
        return control_error(status, code, str(bad))
    except (HttpProcessingError, web.RequestPayloadError):
        return control_error(400, "bad_request", "The body cannot be read as its headers say")
    except StoreError as failure:
        return control_error(503, "store_unavailable", str(failure))
    except web.HTTPException as failure:
        if failure.status < 400:
            raise
        return _refusal(failure, request)
    except Exception as fault:
        if is_goodbye(fault, request):
            raise
        log.exception("%s failed", redact_text(f"{request.method} {request.path}"))
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was begun already") from None
        return control_error(500, "internal_error", "A fault of the server; its log says which")


def _refusal(failure: web.HTTPException, request: web.Request) -> web.Response:
    """What aiohttp refused, in our shape and words."""
    headers, text = {}, failure.reason
    match failure:
        case web.HTTPNotFound():
            text = f"The control API has no path {request.path!r}"
        case web.HTTPMethodNotAllowed():
            headers = {hdrs.ALLOW: failure.headers[hdrs.ALLOW]}
            text = f"This path takes {headers[hdrs.ALLOW]}, not {request.method}"
        case web.HTTPRequestEntityTooLarge():
            text = "The body is larger than the setting max_body_bytes allows"
    code = failure.reason.lower().replace(" ", "_")
    answer = control_error(failure.status, code, text)
    answer.headers.update(headers)
    return answer
