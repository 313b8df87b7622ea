"""What every face of the control API shares: who may ask, how it reads input, how it says no."""

import hmac
import re
from collections.abc import Callable, Container, Iterable, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Protocol, TypeVar, get_args

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.hosts import (
    Host,
    is_loopback,
    normalized_host,
    parse_host_header,
    parse_origin_header,
)
from sandbox_sim.domain.redaction import redact_text

DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 100
LARGEST_INTEGER: Final = 2**63 - 1

R = TypeVar("R")

# Those that change nothing, so that a link or an image elsewhere may lead here by them.
_SAFE_METHODS: Final = frozenset({hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS})

# Method, path and handler of each route of a face.
Routes = Sequence[tuple[str, str, Handler]]


class RouteGroup(Protocol):
    """Some of the routes under `/_sandbox/`, and what they do."""

    def routes(self) -> Routes:
        """The route table."""
        ...


class Hosts:
    """Knows what a web page elsewhere has its visitors' browsers send, and refuses that.

    Such a page cannot choose what `Host`, `Origin` and `Sec-Fetch-Site` say. Under a name that it
    lets point to this machine (DNS rebinding) it could read our answers, so `Host` has to be a
    name of ours: a loopback one, the address that the request came in by, the setting `host`, or
    one that is listed. From its own address it can send forms, so a page that sends a request has
    to be of that `Host`, or listed. Programs send neither `Origin` nor `Sec-Fetch-Site`.

    A browser tells the origin of every POST, so no Content-Type is asked for: `curl -d` sends that
    of a form. There are no CORS headers, so nobody's page reads an answer but our own.

    listed: the setting `allowed_hosts`, and the host of `public_url`.
    """

    def __init__(self, host: str, listed: Iterable[Host]) -> None:
        self._host = normalized_host(host)
        self._listed = tuple(listed)

    def refuse_host(self, request: web.Request) -> web.Response | None:
        """HTTP 403 for a request that was addressed to another name than ours."""
        host = parse_host_header(request.headers.get(hdrs.HOST, ""))
        if host is None:
            why = "The header Host has to be there and name the host that is asked"
            return error(403, "host_not_allowed", why)
        if self._is_ours(host.name, request) or self._is_listed(host):
            return None
        why = f"The header Host says {host}, which is no name of this server that it knows of"
        hint = f"if it is one, add {host.name} to the setting allowed_hosts"
        return error(403, "host_not_allowed", f"{why}; {hint}")

    def refuse_page(
        self, request: web.Request, safe_methods: Container[str] = _SAFE_METHODS
    ) -> web.Response | None:
        """HTTP 403 for a request that a page elsewhere sent.

        safe_methods: those that change nothing here, so that a link elsewhere may send them.
        """
        given = request.headers.get(hdrs.ORIGIN)
        if given is None:
            crosses = request.headers.get("Sec-Fetch-Site", "").lower() == "cross-site"
            if not crosses or request.method in safe_methods:
                return None
            why = "A page of another site may not use this server"
            return error(403, "origin_not_allowed", f"{why}; the setting allowed_hosts lists more")
        origin = parse_origin_header(given)
        if origin is None:
            why = "The header Origin has to name the site of the page, with http or https"
            return error(403, "origin_not_allowed", why)
        if origin == parse_host_header(request.headers.get(hdrs.HOST, "")) or self._is_listed(
            origin
        ):
            return None
        why = f"A page of {origin} may not use this server"
        hint = f"if it may, add {origin} to the setting allowed_hosts"
        return error(403, "origin_not_allowed", f"{why}; {hint}")

    def _is_ours(self, name: str, request: web.Request) -> bool:
        return is_loopback(name) or name in {self._host, _came_in_by(request)}

    def _is_listed(self, host: Host) -> bool:
        return any(host.matches(pattern) for pattern in self._listed)


def _came_in_by(request: web.Request) -> str | None:
    """The address of ours that the connection was made to."""
    transport = request.transport
    return normalized_host(transport.get_extra_info("sockname")[0]) if transport else None


class Guard:
    """Lets through who may steer the sandbox.

    That is whoever has the token of the setting `control_token`, if one is set, and no web page
    elsewhere, even if its visitor could.
    """

    def __init__(self, token: str | None, hosts: Hosts) -> None:
        self._token = None if token is None else token.encode()
        self._hosts = hosts

    def __call__(self, handler: Handler) -> Handler:
        """The handler, guarded; the answer to others is HTTP 403, and 401 without the token."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            refusal = self._hosts.refuse_host(request) or self._hosts.refuse_page(request)
            return refusal or self._refuse_stranger(request) or await handler(request)

        return guarded

    def own_page(self, handler: Handler) -> Handler:
        """The handler of a form that takes no token, for the page that has the form."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            return self._hosts.refuse_page(request) or await handler(request)

        return guarded

    def no_page(self, handler: Handler) -> Handler:
        """The handler of what programs send without a token, under any name that they know us by.

        A page elsewhere gets HTTP 403 by any method: with an image or a link it can send a GET.
        """

        async def guarded(request: web.Request) -> web.StreamResponse:
            refusal = self._hosts.refuse_page(request, safe_methods=frozenset())
            return refusal or await handler(request)

        return guarded

    def _refuse_stranger(self, request: web.Request) -> web.Response | None:
        if self._token is None:
            return None
        given = request.headers.get(hdrs.AUTHORIZATION, "").encode("utf-8", "surrogateescape")
        scheme, _, token = given.partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(token, self._token):
            return None
        return error(401, "unauthorized", "Send the header Authorization: Bearer <token>")


def error(status: int, code: str, message: str) -> web.Response:
    """An error of the control API, in its own shape."""
    answer = {"error": {"code": code, "message": redact_text(message)}}
    return web.json_response(answer, status=status)


class BadInput(Exception):
    """A body or a query that cannot be taken: HTTP 400; the text names each wrong field."""


class Input(BaseModel):
    """A body or a query of the control API: types are strict, and unknown fields refused.

    The description of a field is the end of the sentence "service_id must be …": an error says it,
    so it tells what to send instead.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


def _digits(value: object) -> int:
    """A query has nothing but text; `+5`, `5.0` and `5_000` are no integers there either."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,19}", value):
        return int(value)
    raise PydanticCustomError("digits", "must be an integer")


InQuery = BeforeValidator(_digits)
SERVICE_ID: Final = f"an integer from 1 to {LARGEST_INTEGER}"


class Nothing(Input):
    """What is asked for without any choice."""


class ServiceQuery(Input):
    """What is done for one service, or for all."""

    service_id: Annotated[int, InQuery] | None = Field(
        None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID
    )


class PageQuery(Input):
    """The query of a list; the lists of the control API are newest first.

    A larger limit than `MAX_LIMIT` is no error: `page_size` is what the list keeps to.
    """

    limit: Annotated[int, InQuery] = Field(
        DEFAULT_LIMIT, ge=1, description=f"an integer above 0 (at most {MAX_LIMIT} are given)"
    )

    @property
    def page_size(self) -> int:
        """How many items there are at most."""
        return min(self.limit, MAX_LIMIT)


class ServiceListQuery(PageQuery):
    """The query of a list of one service, or of all, whose ids are texts."""

    after: str | None = Field(None, description="the id after which the list goes on")
    service_id: Annotated[int, InQuery] | None = Field(
        None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID
    )

    @property
    def listing(self) -> Listing:
        """The stretch to look for: one more than the page holds tells whether any follow."""
        return Listing(self.service_id, self.after, self.page_size + 1)

    def answer(
        self,
        plural: str,
        found: Sequence[R],
        shown: Callable[[R], object],
        id_of: Callable[[R], str],
    ) -> web.Response:
        """The page; `next` is what to send as `after` for those that follow."""
        page = found[: self.page_size]
        following = id_of(page[-1]) if len(found) > len(page) else None
        return web.json_response({plural: [shown(each) for each in page], "next": following})


class ListQuery(PageQuery):
    """The query of a list whose ids are numbers."""

    after: Annotated[int, InQuery] | None = Field(
        None, ge=1, le=LARGEST_INTEGER, description="the id after which the list goes on"
    )


class Wait(Input):
    """What `wait` takes: so many that match, within so much real time."""

    match: dict[str, Any] = Field({}, description="an object of fields and the values they have")
    count: int = Field(1, ge=1, le=1000, description="an integer from 1 to 1000")
    timeout_s: float = Field(5, ge=0, le=600, description="a number of seconds from 0 to 600")


def too_late(asked: Wait, came: int) -> web.Response:
    """The answer when what was waited for stayed out."""
    text = f"{came} of {asked.count} came within {asked.timeout_s:g} s"
    return error(408, "timeout", text)


T = TypeVar("T", bound=Input)


async def body_of(request: web.Request, model: type[T], *, optional: bool = False) -> T:
    """The JSON body of a request, whatever its Content-Type says, or `BadInput`.

    optional: no body at all is the same as an empty object.
    """
    raw = await request.read() or (b"{}" if optional else b"null")
    return _read(model, lambda: model.model_validate_json(raw))


def query_of(request: web.Request, model: type[T], *, beside: Sequence[str] = ()) -> T:
    """The query of a request, or `BadInput`; what is `beside` the model's fields is left out."""
    given = request.query
    repeated = {name for name in given if len(given.getall(name)) > 1}
    unknown = {name for name in given if name not in model.model_fields and name not in beside}
    named = {name: value for name, value in given.items() if name in model.model_fields}
    problems = [f"{name} must be given once" for name in sorted(repeated)]
    problems += [_unknown(name, (*model.model_fields, *beside)) for name in sorted(unknown)]
    return _read(model, lambda: model.model_validate(named), *problems)


def _read(model: type[T], read: Callable[[], T], *problems: str) -> T:
    """What is read, if nothing is wrong with it and there were no problems before."""
    try:
        read_input = read()
    except ValidationError as invalid:
        details = invalid.errors(include_url=False, include_input=False)
        problems += tuple(dict.fromkeys(_problem(model, detail) for detail in details))
    if problems:
        raise BadInput("; ".join(problems))
    return read_input


def _problem(model: type[Input], detail: ErrorDetails) -> str:
    """One field, what is wrong with it, and what to do."""
    kind = detail["type"]
    if kind == "json_invalid":
        return f"the body is not valid JSON: {detail['ctx']['error']}"
    if not detail["loc"]:
        return f"the body must be a JSON object with {_listed(model.model_fields)}"
    path, model = _place(model, [str(part) for part in detail["loc"]])
    # What is wrong deeper inside, where there is no one model to tell of it.
    whole = len(path) == len(detail["loc"])
    if whole and kind == "extra_forbidden":
        return _unknown(".".join(path), model.model_fields)
    verb = "is required, and must be" if whole and kind == "missing" else "must be"
    return f"{'.'.join(path)} {verb} {model.model_fields[path[-1]].description}"


def _unknown(name: str, known: Iterable[str]) -> str:
    return f"{name!r} is unknown: leave it out (there are {_listed(known)})"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "no fields"


def _place(model: type[Input], location: Sequence[str]) -> tuple[Sequence[str], type[Input]]:
    """The innermost field that a problem is in, by its path, and the model that has the field."""
    for depth, name in enumerate(location, 1):
        inner = _model_in(getattr(model.model_fields.get(name), "annotation", None))
        if depth == len(location) or inner is None:
            return location[:depth], model
        model = inner
    raise AssertionError(location)


def _model_in(annotation: Any) -> type[Input] | None:
    """The model that a field holds, if it can hold nothing else but None."""
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    match [kind for kind in kinds if kind is not NoneType]:
        case [type() as model] if issubclass(model, Input):
            return model
    return None
