"""The table of routes: one object for each route of the interface and of the control API.

Each module lists its routes once. The router, the guard, the errors, the tests of the reference
pages and the OpenAPI document all read this list. It is read once, not for each request.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

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
    OWN_PAGE = "anyone, except pages of other sites with a method that changes something"
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


class RouteGroup(Protocol):
    """The routes of one resource."""

    def routes(self) -> Iterable[Route]:
        """The routes of this group."""
