"""Describes what is wrong with an invalid body, and suggests the right names of fields.

Source: D5, D36, D43.
"""

import codecs
import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from sandbox_sim.values.redaction import cached_by_text, quoted, quoted_card
from sandbox_sim.values.timestamps import REQUEST_TIME
from sandbox_sim.values.vocabulary import CARD_OPTIONS
from sandbox_sim.web.api import request_models
from sandbox_sim.web.api.request_models import (
    TOO_LONG,
    OperationBody,
    PaymentFields,
    TestCardCollection,
    WithNumber,
)

# How similar two names must be, from 0 to 1: if the right one is missing, and if it is present too.
_MIN_SIMILARITY: Final = 0.7
_MIN_SIMILARITY_IF_PRESENT: Final = 0.92
# How many unknown names of a body are compared, and how long they are, so that no body costs much.
_MAX_UNKNOWN_NAMES: Final = 5
_MAX_NAME_CHARACTERS: Final = 40


def _field_names(model: type[OperationBody]) -> dict[str, str]:
    """The name of each field in a body, by its name in the model."""
    return {name: field.alias or name for name, field in model.model_fields.items()}


_MODELS: Final = [
    each
    for each in vars(request_models).values()
    if isinstance(each, type) and issubclass(each, OperationBody)
]

_ALL_FIELDS: Final = frozenset(name for model in _MODELS for name in _field_names(model).values())

# The name of each field without case and underscores, because clients write `customerNumber` too.
_FIELDS_BY_PLAIN_NAME: Final = {name.replace("_", ""): name for name in sorted(_ALL_FIELDS)}


def _unknown_names(names: Iterable[object]) -> list[str]:
    """The first few names that are not a field of any operation, without long ones."""
    found: list[str] = []
    for name in names:
        if isinstance(name, str) and len(name) <= _MAX_NAME_CHARACTERS and name not in _ALL_FIELDS:
            found.append(name)
            if len(found) == _MAX_UNKNOWN_NAMES:
                break
    return found


def _misspelling_hint(field: str, names: Iterable[str]) -> str | None:
    """A sentence about the unknown name that is most similar to a missing field, or None."""
    by_plain_name = {_plain_name(name): name for name in names}
    plain_field = _plain_name(field)
    closest = difflib.get_close_matches(plain_field, by_plain_name, n=1, cutoff=_MIN_SIMILARITY)
    return _suggestion(by_plain_name[closest[0]], field) if closest else None


def misspelling_warnings(body: OperationBody) -> tuple[str, ...]:
    """A sentence for each unknown field of a valid body that is probably a misspelt one."""
    names = _unknown_names(body.__pydantic_extra__ or ())
    if not names:
        return ()
    known = _field_names(type(body))
    given = {known[name] for name in body.model_fields_set if name in known}
    found = []
    for name in names:
        field, similarity = _closest_field(name)
        required = _MIN_SIMILARITY_IF_PRESENT if field in given else _MIN_SIMILARITY
        if field in known.values() and similarity >= required:
            found.append(_suggestion(name, field))
    return tuple(found)


@cached_by_text(maxsize=512)
def _closest_field(name: str) -> tuple[str, float]:
    """The field with the most similar name, and the similarity from 0 to 1."""
    plain = _plain_name(name)
    closest = difflib.get_close_matches(plain, _FIELDS_BY_PLAIN_NAME, n=1, cutoff=_MIN_SIMILARITY)
    if not closest:
        return "", 0.0
    similarity = difflib.SequenceMatcher(None, plain, closest[0]).ratio()
    return _FIELDS_BY_PLAIN_NAME[closest[0]], similarity


def _plain_name(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _suggestion(name: str, field: str) -> str:
    return f"{quoted(name)[1:-1]} is unknown: did you mean {field}?"


# If the operation could not be determined: the model that finds further problems, by the tags that
# were recognised. Below CTM and a card option only the card is left.
_FALLBACK_MODELS: dict[tuple[int | str, ...], type[PaymentFields]] = {
    (): PaymentFields,
    ("CTM",): WithNumber,
    ("MTC",): WithNumber,
}

_IS_REQUIRED: Final = "is required"

_LONG_NUMBER: Final = 10**30

# The beginning of a form: from `curl -d name=value`, as percent-encoded JSON, and as multipart.
_FORM: Final = re.compile(
    rb"\s*(?:[\w.%+\[\]-]{1,100}=|%7B|--[^\r\n]{1,100}\r?\nContent-Disposition)", re.IGNORECASE
)

# The first bytes of what tools on Windows write as Unicode.
_BYTE_ORDER_MARKS: Final = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# In place of a body that is not JSON; None is the body `null`.
_NOT_JSON: Final = object()


class Problems(NamedTuple):
    """The problems of a body: for `response_message`, and with the refused values (D36)."""

    message: str
    why: str


def problems(error: ValidationError, raw: bytes) -> Problems:
    """Every field of the body that is wrong and what is wrong with it, in one sentence."""
    details = error.errors(include_url=False, include_input=False)
    found = dict(map(_field_problem, details))
    for detail in details:
        if detail["type"].startswith("union_tag"):
            fallback = _FALLBACK_MODELS.get(detail["loc"], TestCardCollection)
            found = dict(_problems_by_model(fallback, raw)) | found
    body = _parse(raw)
    if not isinstance(body, dict):
        return _problems_of_no_object(found, raw, body)
    names = _unknown_names(body)
    missing = [field for field, problem in found.items() if problem == _IS_REQUIRED]
    hints = [hint for field in missing if (hint := _misspelling_hint(field, names))]
    texts = [f"{field} {problem}" for field, problem in found.items()]
    reasons = [text + _refused_value(field, body) for field, text in zip(found, texts, strict=True)]
    return Problems("; ".join([*texts, *hints]), "; ".join([*hints, *reasons]))


def _problems_of_no_object(found: Mapping[str, str], raw: bytes, body: object) -> Problems:
    """The problems of a body that is not an object. found: by field, from pydantic."""
    if not raw.strip():
        text = "the body is empty; send a JSON object"
    elif _FORM.match(raw):
        text = "the body is a form; send JSON, with Content-Type: application/json"
    elif raw.startswith(_BYTE_ORDER_MARKS):
        text = "the body begins with a byte order mark; send JSON in UTF-8 without it"
    elif not _is_utf8(raw):
        text = "the body is not in UTF-8; send JSON in UTF-8"
    else:
        text = "; ".join(f"{field} {problem}" for field, problem in found.items())
    return Problems(text, text + _json_type_note(body))


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _json_type_note(body: object) -> str:
    """What the body is in place of an object, in brackets; empty for `_NOT_JSON`."""
    match body:
        case list():
            kind = "an array"
        case str():
            kind = "a string"
        case bool() | None:
            kind = json.dumps(body)
        case int() | float():
            kind = "a number"
        case _:
            return ""
    return f" (it is {kind})"


def _parse(raw: bytes) -> object:
    try:
        return from_json(raw)
    except ValueError:
        return _NOT_JSON


def _refused_value(field: str, body: Mapping[str, object]) -> str:
    """The value of a wrong field in brackets; empty if the field is missing."""
    if field not in body:
        return ""
    value = body[field]
    quote = quoted_card if body.get("payment_option") in CARD_OPTIONS else quoted
    match value:
        case str():
            text = quote(value)
        case list():
            text = "an array"
        case dict():
            text = "an object"
        case int() | float() if abs(value) >= _LONG_NUMBER:
            text = "a number with many digits"
        case _:
            text = quote(json.dumps(value))[1:-1]
    return f" (it is {text})"


def _problems_by_model(model: type[PaymentFields], raw: bytes) -> Iterator[tuple[str, str]]:
    """The problems of a body by the fields of this model."""
    try:
        model.model_validate_json(raw)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            yield _field_problem(detail)


_REQUEST_TIME_FORMS: Final = (
    "must be a date and time such as 2026-01-31 09:30, 2026-01-31 09:30:00 or 2026-01-31T09:30:00Z"
)
# By the type of the error.
_PROBLEMS: Final = {
    "missing": _IS_REQUIRED,
    "string_type": "must be a string",
    "float_type": "must be a number, without quotes",
    "greater_than": "must be a number above 0",
    "finite_number": "must be a number above 0",
    "int_type": "must be an integer, without quotes",
    "int_from_float": "must be an integer",
}


def _field_problem(detail: ErrorDetails) -> tuple[str, str]:
    """One field and what is wrong with it."""
    kind, context = detail["type"], detail.get("ctx", {})
    names = [part for part in detail["loc"] if part and isinstance(part, str)]
    field = names[-1] if names else "the body"
    if kind in _PROBLEMS:
        return field, _PROBLEMS[kind]
    match kind:
        case "union_tag_not_found":
            return str(context["discriminator"]).strip("'"), _IS_REQUIRED
        case "union_tag_invalid":
            tags = f"must be one of {context['expected_tags']}"
            return str(context["discriminator"]).strip("'"), tags
        case "literal_error":
            expected = context["expected"].replace(" or ", ", ")
            return field, f"must be {'one of ' if ',' in expected else ''}{expected}"
        case "string_too_long":
            return field, TOO_LONG.format(context["max_length"])
        case "string_pattern_mismatch":
            if context["pattern"] == REQUEST_TIME:
                return field, _REQUEST_TIME_FORMS
            return field, "must not be blank or contain a NUL character"
        case "json_invalid":
            return "the body", f"is not valid JSON: {context['error']}"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "the body", "must be a JSON object"
        case _:
            return field, detail["msg"].replace("Input should", "must").replace("Value", "value")
