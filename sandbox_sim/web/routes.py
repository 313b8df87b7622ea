"""The table of routes: one object for each route of the interface and of the control API.

Each module has its routes once; in the control API they stand over their handlers. The router, the
guard, the errors, the tests of the reference pages and the OpenAPI document all read this table. It
is read once, not for each request.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from aiohttp import web
from pydantic import BaseModel

from sandbox_sim.operations import Operation

CONTROL_PREFIX: Final = "/_sandbox"
NETWORKS_PREFIX: Final = "/_networks"
# A route with this method takes every method without a route of its own.
ANY_METHOD: Final = "*"
JSON: Final = "application/json"
HTML: Final = "text/html"
FORM: Final = "application/x-www-form-urlencoded"


# A handler returns the JSON of its first answer, or a whole response for any other answer.
Reply = Mapping[str, object] | web.StreamResponse


class Access(Enum):
    """Who may use a route."""

    CLIENT = "a client of the gateway, by its credentials"
    CONTROL = "anyone with the control token, if it is set, except pages of other sites"
    PAGE = "a person in a browser, logged in if a control token is set"
    HANDSET = "like `CONTROL` or `PAGE`, and phones that scanned the code of a handset page"
    OPEN = "anyone"
    SAME_SITE = "anyone, except pages of other sites with a method that changes something"
    DELIVERY = "any program, except pages of other sites"


class ErrorCode(NamedTuple):
    """A refusal of a route: HTTP status, code in the body, and when it happens."""

    status: int
    code: str
    when: str


class Answer(NamedTuple):
    """A successful answer of a route.

    model: a `TypedDict` of the JSON body, a `ListOf`, or None if the body is not JSON.
    """

    model: Any
    status: int = 200
    media_type: str | None = JSON
    when: str = "done"


PAGE: Final = Answer(None, media_type=HTML, when="the page")
EVENT_STREAM: Final = Answer(None, media_type="text/event-stream")


class ListOf(NamedTuple):
    """The model of an answer with records under a plural name.

    has_next: the field `next`, from which the list goes on. has_dropped: the field `dropped`.
    order: of the records, in words.
    """

    plural: str
    item: Any
    has_next: bool = True
    has_dropped: bool = False
    order: str = "newest first"


class Query(NamedTuple):
    """The query that a route takes.

    filters: parameters in addition to the fields of the model; those in `numbers` are integers,
    those in `switches` true or false, and those in `values` have one of the listed values.
    """

    model: type[BaseModel]
    filters: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset()
    values: Mapping[str, Sequence[str]] = MappingProxyType({})


class Body(NamedTuple):
    """The body that a route takes.

    model: a pydantic model, a `TypeAdapter`, or a `TypedDict` if the handler reads the body itself;
    None if any body is accepted.
    optional: an empty body counts as an empty object.
    match_fields: the fields that `match` can name, if the model has `match`.
    match_schemas: the JSON schemas of those fields for which it refuses some values.
    """

    model: Any
    optional: bool = False
    media_type: str = JSON
    match_fields: tuple[str, ...] = ()
    match_schemas: Mapping[str, Mapping[str, object]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Route:
    """One route.

    path: in the format of the router; `{name}` stands for one part of it.
    handler: in the control API it takes the request, and the parsed query or body if the route has
    one. In the interface it takes a `Call`.
    page: answers browsers in place of `handler`; redirects them to the login if necessary.
    group: the heading under which the document lists it.
    errors: of this route; `errors_of` of the control API adds those that every route has.
    operations: the operations of this path; empty in the control API.
    """

    method: str
    path: str
    handler: Callable[..., Awaitable[Any]]
    summary: str
    group: str
    answers: tuple[Answer, ...]
    access: Access = Access.CONTROL
    query: Query | None = None
    body: Body | None = None
    errors: tuple[ErrorCode, ...] = ()
    operations: tuple[Operation, ...] = ()
    page: Callable[..., Awaitable[Any]] | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the variable parts of the path."""
        return tuple(re.findall(r"{(\w+)}", self.path))


H = TypeVar("H", bound=Callable[..., Awaitable[Any]])


def route(
    endpoint: str,
    summary: str,
    *,
    answer: Any = None,
    status: int = 200,
    optional: bool = False,
    **fields: Any,
) -> Callable[[H], H]:
    """Mark a method of a `RouteGroup` as the handler of a route.

    The second parameter of the handler is the query, or the JSON body of a POST or PATCH, and its
    result the JSON of the answer, where the arguments do not say otherwise.

    endpoint: method and path, such as "GET /_sandbox/clock".
    answer, status: model and status of the answer. optional: an empty body counts as `{}`.
    fields: further fields of the `Route`, such as `errors`.
    """
    method, path = endpoint.split(" ")

    def mark(handler: H) -> H:
        _, *input_models, result = handler.__annotations__.values()
        derived: dict[str, Any] = {"method": method, "path": path, "summary": summary}
        derived["answers"] = (Answer(answer or result, status),)
        for model in input_models:
            has_body = method in {"POST", "PATCH"}
            derived |= {"body": Body(model, optional)} if has_body else {"query": Query(model)}
        vars(handler).setdefault("marks", []).insert(0, {**derived, **fields})
        return handler

    return mark


class RouteGroup:
    """The routes of one resource: one for each mark of a method by `route`, in their order.

    group, access, errors: of each route that does not have its own.
    """

    group: ClassVar[str]
    access: ClassVar[Access] = Access.CONTROL
    errors: ClassVar[tuple[ErrorCode, ...]] = ()
    _marked: ClassVar[Sequence[tuple[str, Mapping[str, Any]]]]

    def __init_subclass__(cls) -> None:
        items = vars(cls).items()
        cls._marked = [(name, each) for name, item in items for each in getattr(item, "marks", ())]

    def routes(self) -> list[Route]:
        """The routes of this group."""
        make_route = partial(Route, group=self.group, access=self.access, errors=self.errors)
        routes = []
        for name, fields in self._marked:
            page = {"page": fields["page"].__get__(self)} if "page" in fields else {}
            routes.append(make_route(**{**fields, **page}, handler=getattr(self, name)))
        return routes
