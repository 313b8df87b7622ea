"""What every face of the control API shares: its token, how it reads input, how it says no."""

import hmac
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Protocol, TypeVar

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 100
LARGEST_INTEGER: Final = 2**63 - 1

# Method, path and handler of each route of a face.
Routes = Sequence[tuple[str, str, Handler]]


class Face(Protocol):
    """Some of the routes under `/_sandbox/`, and what they do."""

    def routes(self) -> Routes:
        """The route table."""
        ...


class Guard:
    """Lets through whoever has the token of the setting `control_token`, if one is set."""

    def __init__(self, token: str | None) -> None:
        self._authorization = None if token is None else f"Bearer {token}".encode()

    def __call__(self, handler: Handler) -> Handler:
        """The handler, guarded; without the token the answer is HTTP 401."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            given = request.headers.get(hdrs.AUTHORIZATION, "").encode("utf-8", "surrogateescape")
            if self._authorization is None or hmac.compare_digest(given, self._authorization):
                return await handler(request)
            return error(401, "unauthorized", "Send the header Authorization: Bearer <token>")

        return guarded


def error(status: int, code: str, message: str) -> web.Response:
    """An error of the control API, in its own shape."""
    return web.json_response({"error": {"code": code, "message": message}}, status=status)


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
    raw = await request.read() or (b"{}" if optional else b"")
    return _read(model, lambda: model.model_validate_json(raw))


def query_of(request: web.Request, model: type[T], *, ignoring: frozenset[str] = frozenset()) -> T:
    """The query of a request without the names in `ignoring`, or `BadInput`."""
    given = request.query
    repeated = {name for name in given if len(given.getall(name)) > 1}
    named = {name: value for name, value in given.items() if name not in ignoring}
    problems = [f"{name} must be given once" for name in sorted(repeated)]
    return _read(model, lambda: model.model_validate(named), *problems)


def _read(model: type[T], read: Callable[[], T], *problems: str) -> T:
    """What is read, if nothing is wrong with it and there were no problems before."""
    try:
        read_input = read()
    except ValidationError as invalid:
        details = invalid.errors(include_url=False, include_input=False)
        problems += tuple(_problem(model, detail) for detail in details)
    if problems:
        raise BadInput("; ".join(problems))
    return read_input


def _problem(model: type[Input], detail: ErrorDetails) -> str:
    """One field, what is wrong with it, and what to do."""
    kind, fields = detail["type"], model.model_fields
    if kind == "json_invalid":
        return f"the body is not valid JSON: {detail['ctx']['error']}"
    if not detail["loc"]:
        return f"the body must be a JSON object with {', '.join(fields)}"
    name = str(detail["loc"][0])
    if kind == "extra_forbidden":
        return f"{name!r} is unknown: leave it out (there are {', '.join(fields)})"
    verb = "is required, and must be" if kind == "missing" else "must be"
    return f"{name} {verb} {fields[name].description}"
