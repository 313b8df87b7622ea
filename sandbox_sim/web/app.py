"""The aiohttp application: every route, with and without the base path, and one way to fail."""

from collections.abc import Iterable

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from sandbox_sim.web.checkout import CheckoutFace
from sandbox_sim.web.control import Control, error as control_error
from sandbox_sim.web.gateway import Frontdoor, Operations

CONTROL_PREFIX = "/_sandbox"


def make_app(
    frontdoor: Frontdoor,
    operations: Operations,
    ours: Iterable[Control | CheckoutFace],
    *,
    base_path: str,
    max_body_bytes: int,
) -> web.Application:
    """Assemble the application; `base_path` is empty or begins with a slash."""
    prefixes = dict.fromkeys(("", base_path))

    @web.middleware
    async def in_shape(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except ConnectionError:
            raise
        except Exception as error:
            if not _is_control(request.path, prefixes):
                return await frontdoor.failed(request, error)
            if isinstance(error, web.HTTPException):
                return _control_failure(error)
            raise

    app = web.Application(client_max_size=max_body_bytes, middlewares=[in_shape])
    for prefix in prefixes:
        for path, operation in operations.by_path().items():
            handler = frontdoor.handler(path, operation)
            app.router.add_route("*", prefix + path, handler, expect_handler=_expect)
        for face in ours:
            for route in face.routes():
                app.router.add_route(
                    route.method, prefix + route.path, route.handler, expect_handler=_expect
                )
    app.router.add_route("*", r"/{unknown:[\s\S]*}", frontdoor.unknown_path, expect_handler=_expect)
    return app


def _is_control(path: str, prefixes: Iterable[str]) -> bool:
    return any(f"{path}/".startswith(f"{prefix}{CONTROL_PREFIX}/") for prefix in prefixes)


def _control_failure(failure: web.HTTPException) -> web.StreamResponse:
    if failure.status < 400:
        return failure
    code = (failure.reason or "error").lower().replace(" ", "_")
    answer = control_error(failure.status, code, failure.reason)
    if isinstance(failure, web.HTTPMethodNotAllowed):
        answer.headers[hdrs.ALLOW] = failure.headers[hdrs.ALLOW]
    return answer


async def _expect(request: web.Request) -> None:
    """Answer `Expect: 100-continue`; any other expectation is left unmet and no reason to fail."""
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
