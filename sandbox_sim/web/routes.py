"""The table of routes: one object for each route of the interface and of the control API.

Each module lists its routes once. The router, the guard, the errors, the tests of the reference
pages and the OpenAPI document all read this list. The server reads it when it starts, so it costs
a request nothing.
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
# A route with this method takes every method that no other route of its path takes.
ANY_METHOD: Final = "*"
JSON: Final = "application/json"
HTML: Final = "text/html"
FORM: Final = "application/x-www-form-urlencoded"


# A handler returns the JSON of its first answer, or a whole response for any other answer.
Reply = Mapping[str, object] | web.StreamResponse


class Access(Enum):
    """Who may use a route."""

    CLIENT = "a client of the gateway, by its credentials"
    CONTROL = "anyone with the control token where one is set, but no page of another site"
    PAGE = "a person in a browser, logged in where a control token is set"
    HANDSET = "as `CONTROL` or `PAGE`, and a phone that has scanned the code of a handset page"
    OPEN = "anyone"
    OWN_PAGE = "anyone, but no page of another site by a method that changes something"
    DELIVERY = "any program, but no page of another site"


class ErrorCode(NamedTuple):
    """One way in which a route refuses: HTTP status, code in the body, and when it happens."""

    status: int
    code: str
    when: str


class Answer(NamedTuple):
    """What a route answers when it does its work.

    model: a `TypedDict` of the JSON body, a `ListOf`, or None where the body is not JSON.
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

    filters: parameters beside the fields of the model; those of `numbers` are integers, those of
    `switches` true or false, and those of `values` one of theirs.
    """

    model: type[BaseModel]
    filters: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset()
    values: Mapping[str, Sequence[str]] = MappingProxyType({})


class Body(NamedTuple):
    """The body that a route takes.

    model: a pydantic model, a `TypeAdapter`, or a `TypedDict` where the handler reads the body
    itself; None where any body is taken.
    optional: no body at all is the same as an empty object.
    match_fields: the fields that `match` can name, where the model has it.
    match_values: the values that each of some of these fields can have, as JSON.
    """

    model: Any
    optional: bool = False
    media_type: str = JSON
    match_fields: tuple[str, ...] = ()
    match_values: Mapping[str, Sequence[str | None]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Route:
    """One route.

    path: as the router takes it; `{name}` stands for one part of it.
    handler: in the control API it takes the request, and also the parsed query or body where the
    route has one. In the interface it takes a `Call`.
    page: answers a browser in place of `handler`; a browser that must log in first is sent to do
    so.
    group: the heading under which the document lists it.
    errors: those of this route; `errors_of` of the control API adds those that every route has.
    operations: what a request to this path can ask for; empty in the control API.
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
        """The part of the table that it has."""
