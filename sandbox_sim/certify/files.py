"""Reads TOML files into models; every problem is a line with the file, the field and what to do."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from sandbox_sim.settings.loading import ConfigError, message_of, read_toml
from sandbox_sim.values.redaction import closest_match

M = TypeVar("M", bound="Table")

_DURATION: Final = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?(ms|s|m|h)")
_UNITS: Final = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}


class FileError(Exception):
    """A file is wrong; each line names the file and the field, and says what it must be."""


class Table(BaseModel):
    """A table of a file. Unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def parse_duration(value: object) -> timedelta:
    """A duration of a file, such as `10m`. Raises `ValueError`."""
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('must be a duration such as "500ms", "5s", "10m" or "1h"')
    return timedelta(**{_UNITS[match[2]]: float(match[1])})


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]


def format_duration(time: timedelta) -> str:
    """The text of a duration in a file, such as 1.5s or 10m."""
    seconds = time.total_seconds()
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:.3g}s" if seconds < 1 else f"{seconds:g}s"


def read(file: Path, model: type[M]) -> M:
    """The file as this model. Raises `FileError`."""
    try:
        document = read_toml(file)
    except ConfigError as error:
        raise FileError(str(error)) from None
    return parse(document, model, str(file))


def parse(document: Mapping[str, Any], model: type[M], place: str) -> M:
    """The document as this model. place: names it in errors. Raises `FileError`."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise FileError("\n".join(_problems(error, model, place))) from None


def _problems(error: ValidationError, model: type[BaseModel], place: str) -> Iterator[str]:
    for detail in error.errors(include_url=False, include_input=False):
        path = ".".join(str(part) for part in detail["loc"])
        message = message_of(detail)
        if detail["type"] == "missing":
            message = "is required"
        if detail["type"] == "extra_forbidden":
            message = "there is no such field"
            if near := closest_match(str(detail["loc"][-1]), _fields(model)):
                message += f"; did you mean {near}?"
        yield f"{place}: {path}: {message}" if path else f"{place}: {message}"


def _fields(model: type[BaseModel]) -> Iterator[str]:
    """The names of the fields of a model and of the tables in it."""
    for name, field in model.model_fields.items():
        yield name
        for inner in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from _fields(inner)
