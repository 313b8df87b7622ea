"""Reading the body or the query of a request, with errors that name each wrong field."""

from collections.abc import Callable, Iterable, Sequence
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args

from aiohttp import web
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sandbox_sim.domain.suggestions import nearest


class BadInput(Exception):
    """A body or a query that is refused with HTTP 400; the text names each wrong field."""


T = TypeVar("T", bound=BaseModel)


async def body_of(request: web.Request, model: type[T], *, optional: bool = False) -> T:
    """The JSON body of a request, whatever its Content-Type says, or `BadInput`.

    optional: no body at all is the same as an empty object.
    """
    raw = await request.read() or (b"{}" if optional else b"null")
    return _read(model, lambda: model.model_validate_json(raw))


def query_of(request: web.Request, model: type[T], *, beside: Sequence[str] = ()) -> T:
    """The query of a request, or `BadInput`; the names in `beside` are allowed and not read."""
    given = request.query
    repeated = {name for name in given if len(given.getall(name)) > 1}
    unknown = {name for name in given if name not in model.model_fields and name not in beside}
    named = {name: value for name, value in given.items() if name in model.model_fields}
    problems = [f"{name} must be given once" for name in sorted(repeated)]
    problems += [_unknown(name, (*model.model_fields, *beside)) for name in sorted(unknown)]
    return _read(model, lambda: model.model_validate(named), *problems)


def _read(model: type[T], read: Callable[[], T], *problems: str) -> T:
    """Read the input; raise `BadInput` with its problems and those that are given."""
    try:
        read_input = read()
    except ValidationError as invalid:
        details = invalid.errors(include_url=False, include_input=False)
        problems += tuple(dict.fromkeys(_problem(model, detail) for detail in details))
    if problems:
        raise BadInput("; ".join(problems))
    return read_input


def _problem(model: type[BaseModel], detail: ErrorDetails) -> str:
    """A sentence about one wrong field, with what to send instead."""
    kind = detail["type"]
    if kind == "json_invalid":
        return f"the body is not valid JSON: {detail['ctx']['error']}"
    if not detail["loc"]:
        return f"the body must be a JSON object with {_listed(model.model_fields)}"
    path, model = _place(model, [str(part) for part in detail["loc"]])
    # False where the problem is deeper inside than the innermost field that has a description.
    whole = len(path) == len(detail["loc"])
    if whole and kind == "extra_forbidden":
        return _unknown(".".join(path), model.model_fields)
    verb = "is required, and must be" if whole and kind == "missing" else "must be"
    return f"{'.'.join(path)} {verb} {model.model_fields[path[-1]].description}"


def _unknown(name: str, known: Iterable[str]) -> str:
    parents, _, last = name.rpartition(".")
    near = nearest(last, known)
    if near is None:
        return f"{name!r} is unknown: there are {_listed(known)}"
    return f"{name!r} is unknown: did you mean {f'{parents}.{near}' if parents else near}?"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "no fields"


def _place(
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
    """The model that a field holds, if it can hold nothing else but None."""
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    match [kind for kind in kinds if kind is not NoneType]:
        case [type() as model] if issubclass(model, BaseModel):
            return model
    return None
