"""The errors of the control API: one catalogue, and one function that writes them."""

from typing import Final, TypeVar

from aiohttp import web

from sandbox_sim.values.redaction import redact_text
from sandbox_sim.web.routes import Access, ErrorCode, Route

T = TypeVar("T")

BAD_REQUEST: Final = ErrorCode(
    400, "bad_request", "the body or the query is wrong; the message names each field"
)
UNAUTHORIZED: Final = ErrorCode(401, "unauthorized", "the token is missing or wrong")
HOST_NOT_ALLOWED: Final = ErrorCode(
    403, "host_not_allowed", "the header `Host` does not name this server"
)
ORIGIN_NOT_ALLOWED: Final = ErrorCode(
    403, "origin_not_allowed", "a page of another site sent the request"
)
NOT_FOUND: Final = ErrorCode(404, "not_found", "no such path, or no such record")
METHOD_NOT_ALLOWED: Final = ErrorCode(
    405,
    "method_not_allowed",
    "the path does not accept this method; the header `Allow` lists those it accepts",
)
TIMEOUT: Final = ErrorCode(408, "timeout", "a `wait` ended before enough records matched")
ALREADY_DECIDED: Final = ErrorCode(409, "already_decided", "the transaction has been decided")
FORCE_NEEDED: Final = ErrorCode(
    409,
    "force_needed",
    "the network may still decide otherwise; `force` settles it anyway",
)
CANNOT_ASK: Final = ErrorCode(
    409, "cannot_ask", "no network can be asked about the transaction; the message says why"
)
ENTRY_REFUSED: Final = ErrorCode(
    409, "entry_refused", "the books do not allow this entry; the message says why"
)
NOT_REFUNDED: Final = ErrorCode(
    409, "not_refunded", "the refund cannot be made; the message says why, and what to do"
)
AMBIGUOUS: Final = ErrorCode(409, "ambiguous", "the identifier fits several records")
NOT_WAITING: Final = ErrorCode(409, "not_waiting", "the callback is not waiting for an attempt")
RECORDS_WAIT: Final = ErrorCode(
    409, "records_wait", "records that were created later than the machine's time still wait"
)
PRODUCTION: Final = ErrorCode(
    409, "production", "production mode forbids the request, or the request needs production mode"
)
TOO_MANY: Final = ErrorCode(409, "too_many", "there are too many active rules")
SEEDED_ALREADY: Final = ErrorCode(409, "seeded_already", "the service already has these records")
NO_CREDENTIALS: Final = ErrorCode(
    409, "no_credentials", "no credential set of mode S is for the service"
)
BODY_TOO_LARGE: Final = ErrorCode(
    413, "request_entity_too_large", "the body is larger than the setting `max_body_bytes`"
)
ENCODED_BODY: Final = ErrorCode(
    415, "encoded_body", "the body has a `Content-Encoding`, which is not supported"
)
INTERNAL_ERROR: Final = ErrorCode(
    500, "internal_error", "an internal error of the server; the log has the traceback"
)
NO_METRICS: Final = ErrorCode(501, "no_metrics", "the extra `metrics` is not installed")
NO_FILE: Final = ErrorCode(409, "no_file", "the store is not a SQLite file")
STORE_UNAVAILABLE: Final = ErrorCode(503, "store_unavailable", "the state cannot be read or saved")

# All of the above; the OpenAPI document lists those of each route.
CATALOGUE: Final = tuple(each for each in tuple(vars().values()) if isinstance(each, ErrorCode))
# It is written to a connection that is closed, so no client reads it.
DISCONNECTED: Final = ErrorCode(408, "disconnected", "the client closed the connection")
_ERRORS_OF_ACCESS: Final = {
    **dict.fromkeys(
        (Access.CONTROL, Access.HANDSET), (UNAUTHORIZED, HOST_NOT_ALLOWED, ORIGIN_NOT_ALLOWED)
    ),
    Access.PAGE: (HOST_NOT_ALLOWED, ORIGIN_NOT_ALLOWED),
    Access.SAME_SITE: (ORIGIN_NOT_ALLOWED,),
    Access.DELIVERY: (ORIGIN_NOT_ALLOWED,),
}


class RequestRefused(Exception):
    """A request is refused with this error; the text is for people."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


def require_production(part: T | None, effect: str) -> T:
    """A part of production mode. Raises `RequestRefused` if it is off, with what follows."""
    if part is None:
        raise RequestRefused(PRODUCTION, f"Production mode is off, so {effect}")
    return part


def errors_of(route: Route) -> tuple[ErrorCode, ...]:
    """Every error of a route of the control API, in the order of their HTTP statuses."""
    found = {*route.errors, *_ERRORS_OF_ACCESS.get(route.access, ())}
    if route.page is not None:
        found.update(_ERRORS_OF_ACCESS[Access.PAGE])
    found |= {INTERNAL_ERROR, STORE_UNAVAILABLE}
    if route.parameters:
        found.add(NOT_FOUND)  # a name with NUL is never found
    if route.query is not None or route.body is not None:
        found.add(BAD_REQUEST)
    if route.body is not None:
        found |= {BODY_TOO_LARGE, ENCODED_BODY}
    return tuple(error for error in CATALOGUE if error in found)


def error_response(error: ErrorCode, message: str, field: str = "") -> web.Response:
    """An error answer of the control API, with secrets in the message masked.

    field: the field of the body that the message is about; empty if it is about several.
    """
    named = {"field": field} if field else {}
    answer = {"error": {"code": error.code, "message": redact_text(message), **named}}
    return web.json_response(answer, status=error.status)
