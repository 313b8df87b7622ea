"""The input of the control API: models that routes share, and errors that name each wrong field.

`WhoAndWhy` and `SignedInput` have the fields of every body that a person signs (D44).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypedDict, TypeVar, get_args
from urllib.parse import parse_qsl

from aiohttp import web
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from sandbox_sim.records.ledger import ManualEntry
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.transactions import STATUS_WORDS
from sandbox_sim.values.redaction import closest_match, redact_text
from sandbox_sim.values.timestamps import MAX_WAIT_S, VALID_WAIT
from sandbox_sim.values.vocabulary import MAX_IDENTIFIER, MAX_REFERENCE
from sandbox_sim.web.routes import FORM

DEFAULT_LIMIT: Final = 20

MAX_LIMIT: Final = 100

LARGEST_INTEGER: Final = 2**63 - 1

AFTER: Final = "the id of the last item of the previous page, without NUL characters"

SERVICE_ID: Final = f"an integer from 1 to {LARGEST_INTEGER}"

_NO_NUL: Final = r"^[^\x00]*$"  # no database takes it

Text = Annotated[str, Field(pattern=_NO_NUL)]

Name = Annotated[Text, Field(max_length=MAX_IDENTIFIER)]

Sentence = Annotated[Text, Field(max_length=MAX_REFERENCE)]

# An amount of money or units as text, above 0: a JSON number has no exact decimals.
_AMOUNT: Final = (
    r"^([0-9]{0,14}[1-9][0-9]{0,14}(\.[0-9]{1,6})?|[0-9]{1,15}\.[0-9]{0,5}[1-9][0-9]{0,5})$"
)

AmountText = Annotated[str, Field(pattern=_AMOUNT)]

AN_AMOUNT: Final = 'an amount above 0 as text, such as "8.50"'

R = TypeVar("R")


class Input(BaseModel):
    """A body or a query of the control API. It has strict types and refuses unknown fields.

    The description of a field ends the sentence "service_id must be …". Error messages contain it.
    Lines of the docstring say what a field means, for the OpenAPI document, as this one does:

    service_id: the service.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


_MAX_DIGITS: Final = 19


def _parse_integer(value: object) -> int:
    """Read an integer of a query. `+5`, `5.0` and `5_000` are refused."""
    if isinstance(value, str) and re.fullmatch(f"[0-9]{{1,{_MAX_DIGITS}}}", value):
        return int(value)
    raise PydanticCustomError("digits", "must be an integer")


_ParseInteger: Final = BeforeValidator(_parse_integer)

# The bounds stand first: the schema of a type that is validated in Python has none.
QueryServiceId = Annotated[int, Field(gt=0, le=LARGEST_INTEGER), _ParseInteger]

QueryId = Annotated[int, Field(ge=1, le=LARGEST_INTEGER), _ParseInteger]

QueryLimit = Annotated[int, Field(ge=1, lt=10**_MAX_DIGITS), _ParseInteger]


# About ten years; no list needs more.
MAX_OPEN_S: Final = 315_360_000


def _parse_seconds(value: object) -> float:
    """Read a number of seconds of a query, such as `600` or `0.8`."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,6})?", value):
        return float(value)
    raise PydanticCustomError("seconds", "must be a number of seconds")


QuerySeconds = Annotated[float, Field(ge=0, le=MAX_OPEN_S), BeforeValidator(_parse_seconds)]


def _parse_time(value: object) -> datetime:
    """Read a time; UTC is the default zone."""
    try:
        read = datetime.fromisoformat(value if isinstance(value, str) else "")
        return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise PydanticCustomError("time", "must be a time") from None


Moment = Annotated[datetime, BeforeValidator(_parse_time)]

A_TIME: Final = "a time such as 2026-01-31T00:00:00Z"


class Nothing(Input):
    """No field at all."""


class ServiceBody(Input):
    """The body of a request for one service; without `service_id` for all."""

    service_id: int | None = Field(None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)


class ServiceQuery(Input):
    """One service, or all."""

    service_id: QueryServiceId | None = Field(None, description=SERVICE_ID)


class PageQuery(Input):
    """The query of a list. Lists are newest first.

    A limit above `MAX_LIMIT` is accepted, and `page_size` lowers it.
    """

    limit: QueryLimit = Field(
        DEFAULT_LIMIT, description=f"an integer above 0 (at most {MAX_LIMIT} are returned)"
    )

    @property
    def page_size(self) -> int:
        """The maximum number of items of a page."""
        return min(self.limit, MAX_LIMIT)

    def page_view(
        self,
        plural: str,
        found: Sequence[R],
        id_of: Callable[[R], str],
        shown: Callable[[R], object] = lambda each: each,
    ) -> dict[str, object]:
        """The page under this name, and in `next` the value of `after` for the next page.

        found: the items of the page, and more if there is a next page. `next` is None on the last.
        """
        page = found[: self.page_size]
        following = id_of(page[-1]) if len(found) > len(page) else None
        return {plural: [*map(shown, page)], "next": following}


class ServiceListQuery(PageQuery):
    """The query of a list of one service, or of all, whose ids are texts."""

    after: Text | None = Field(None, description=AFTER)
    service_id: QueryServiceId | None = Field(None, description=SERVICE_ID)

    @property
    def listing(self) -> Listing:
        """What to read: one item more than the page, to know whether there is a next page."""
        return Listing(self.service_id, self.after, self.page_size + 1)


class ListQuery(PageQuery):
    """The query of a list whose ids are numbers."""

    after: QueryId | None = Field(None, description="the id of the last item of the previous page")


class Wait(Input):
    """The body of `wait`.

    match: what the records must have; a dot reaches inside, as in `request.amount`.
    count: how many of them to wait for.
    timeout_s: how much real time to wait at most.
    """

    match: dict[str, Any] = Field({}, description="an object with fields and their values")
    count: int = Field(1, ge=1, le=1000, description="an integer from 1 to 1000")
    timeout_s: float = Field(5, ge=0, le=MAX_WAIT_S, description=VALID_WAIT)


class Deleted(TypedDict):
    """The answer of a route that deletes."""

    deleted: Annotated[int, "how many there were"]


class BadInput(Exception):
    """A body or a query that is refused with HTTP 400; the text names each wrong field."""


_MAX_FORM_FIELDS: Final = 100

T = TypeVar("T", bound=BaseModel)


async def body_of(request: web.Request, model: type[T], *, optional: bool = False) -> T:
    """The JSON body of a request, with any Content-Type. Raises `BadInput`.

    optional: an empty body counts as an empty object.
    """
    raw = await request.read() or (b"{}" if optional else b"null")
    return _validate(model, lambda: model.model_validate_json(raw))


async def form_of(request: web.Request) -> Mapping[str, str]:
    """The form in the body of a request, as a browser sends it, or `BadInput`."""
    if request.content_type != FORM or (request.charset or "utf-8").lower() != "utf-8":
        raise BadInput(f"the body must be a form: send {FORM} in UTF-8")
    raw = await request.read()
    try:
        pairs = parse_qsl(
            raw.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_FORM_FIELDS,
        )
    except ValueError:
        text = f"the form must be in UTF-8 and have at most {_MAX_FORM_FIELDS} fields"
        raise BadInput(text) from None
    return dict(pairs)


def query_of(request: web.Request, model: type[T], *, also_allowed: Sequence[str] = ()) -> T:
    """The query of a request. Raises `BadInput`.

    also_allowed: names that the query may have and that are not read here.
    """
    query, known = request.query, (*model.model_fields, *also_allowed)
    repeated = {name for name in query if len(query.getall(name)) > 1}
    unknown = {name for name in query if name not in known}
    fields = {name: value for name, value in query.items() if name in model.model_fields}
    problems = [f"{name} must be given once" for name in sorted(repeated)]
    problems += [_unknown_field_problem(name, known) for name in sorted(unknown)]
    return _validate(model, lambda: model.model_validate(fields), *problems)


def _validate(model: type[T], validate: Callable[[], T], *problems: str) -> T:
    """The validated input. Raises `BadInput` with these problems and those of validation."""
    try:
        validated = validate()
    except ValidationError as invalid:
        details = invalid.errors(include_url=False, include_input=False)
        problems += tuple(dict.fromkeys(_field_problem(model, detail) for detail in details))
    if problems:
        raise BadInput("; ".join(problems))
    return validated


def _field_problem(model: type[BaseModel], detail: ErrorDetails) -> str:
    """A sentence about one wrong field, with what to send instead."""
    kind = detail["type"]
    if kind == "json_invalid":
        return f"the body is not valid JSON: {detail['ctx']['error']}"
    if not detail["loc"]:
        takes_any = model.model_config.get("extra") == "allow"
        names = "names and values" if takes_any else _joined(model.model_fields)
        return f"the body must be a JSON object with {names}"
    path, model = _innermost_field(model, [str(part) for part in detail["loc"]])
    # False if the problem is deeper inside than the innermost field that has a description.
    is_exact = len(path) == len(detail["loc"])
    if is_exact and kind == "extra_forbidden":
        return _unknown_field_problem(".".join(path), model.model_fields)
    verb = "is required, and must be" if is_exact and kind == "missing" else "must be"
    return f"{'.'.join(path)} {verb} {model.model_fields[path[-1]].description}"


def _unknown_field_problem(name: str, known: Iterable[str]) -> str:
    parents, _, last = name.rpartition(".")
    closest = closest_match(last, known)
    if closest is None:
        return f"{name!r} is unknown: the fields are {_joined(known)}"
    return f"{name!r} is unknown: did you mean {f'{parents}.{closest}' if parents else closest}?"


def _joined(names: Iterable[str]) -> str:
    return ", ".join(names) or "no fields"


def _innermost_field(
    model: type[BaseModel], location: Sequence[str]
) -> tuple[Sequence[str], type[BaseModel]]:
    """The innermost field that a problem is in, by its path, and the model that has the field."""
    for depth, name in enumerate(location, 1):
        inner = _model_in(getattr(model.model_fields.get(name), "annotation", None))
        if depth == len(location) or inner is None:
            return location[:depth], model
        model = inner
    raise AssertionError(location)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model of a field, if the field holds only that model or None."""
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    match [kind for kind in kinds if kind is not NoneType]:
        case [type() as model] if issubclass(model, BaseModel):
            return model
    return None


def _code_of_word(value: object) -> object:
    return STATUS_WORDS.get(value, value) if isinstance(value, str) else value


# Marks a field that takes a status code or its word; the field has the code.
StatusWord: Final = BeforeValidator(_code_of_word)


def codes_and_words(codes: Iterable[str]) -> str:
    """The codes, and then their words, as an error lists them."""
    listed = list(codes)
    return ", ".join([*listed, *(word for word, code in STATUS_WORDS.items() if code in listed)])


class WhoAndWhy(Input):
    """Who acts, and why."""

    by: Name | None = Field(
        None,
        min_length=1,
        description=f"the name of the person, at most {MAX_IDENTIFIER} characters, for mode P",
    )
    reason: Sentence | None = Field(
        None,
        min_length=1,
        description=f"the reason, at most {MAX_REFERENCE:,} characters, for mode P",
    )


class SignedInput(WhoAndWhy):
    """Who makes an entry, and why."""

    reference: Sentence = Field(
        "",
        description=f"your own reference, such as a ticket number, at most {MAX_REFERENCE:,} "
        "characters",
    )

    @property
    def manual_entry(self) -> ManualEntry:
        """Who makes the entry, and why. Raises `BadInput`."""
        by, why = (self.by or "").strip(), (self.reason or "").strip()
        if not by or not why:
            raise BadInput(
                "reason and by must be set: an entry of mode P needs a reason and a name"
            )
        return ManualEntry(redact_text(by), redact_text(why), redact_text(self.reference.strip()))
