"""What is wrong with a body that does not fit its model, in words. Source: D5, D36."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from sandbox_sim.domain.refused_values import quoted, quoted_card
from sandbox_sim.domain.timestamps import REQUEST_TIME
from sandbox_sim.domain.vocabulary import PaymentOption
from sandbox_sim.web.api import field_names
from sandbox_sim.web.api.request_models import PaymentFields, TestCardCollection, WithNumber

# Where a union could not be told apart, the model that finds what else is wrong, by the tags that
# were recognised; below CTM and a card option there is only the card.
_STAND_IN: dict[tuple[int | str, ...], type[PaymentFields]] = {
    (): PaymentFields,
    ("CTM",): WithNumber,
    ("MTC",): WithNumber,
}
_REQUIRED: Final = "is required"
_CARD_OPTIONS: Final = (PaymentOption.CARD, PaymentOption.CARD_AND_MOBILE_MONEY)
_LONG_NUMBER: Final = 10**30
# The beginning of a form: as `curl -d name=value` sends it, as JSON that was encoded like one, and
# as a form with files.
_FORM: Final = re.compile(
    rb"\s*(?:[\w.%+\[\]-]{1,100}=|%7B|--[^\r\n]{1,100}\r?\nContent-Disposition)", re.IGNORECASE
)


class Problems(NamedTuple):
    """All that is wrong with a body: for `response_message`, and with the refused values (D36)."""

    message: str
    why: str


def problems(error: ValidationError, raw: bytes) -> Problems:
    """Every field of the body that is wrong and what is wrong with it, in one sentence."""
    details = error.errors(include_url=False, include_input=False)
    found = dict(map(_problem, details))
    for detail in details:
        if detail["type"].startswith("union_tag"):
            stand_in = _STAND_IN.get(detail["loc"], TestCardCollection)
            found = dict(_further_problems(stand_in, raw)) | found
    body = _parsed(raw)
    if not isinstance(body, dict):
        return _of_no_object(found, raw)
    names = field_names.unknown(body)
    missing = [field for field, problem in found.items() if problem == _REQUIRED]
    hints = [hint for field in missing if (hint := field_names.meant(field, names))]
    texts = [f"{field} {problem}" for field, problem in found.items()]
    reasons = [text + _value(field, body) for field, text in zip(found, texts, strict=True)]
    return Problems("; ".join([*texts, *hints]), "; ".join([*hints, *reasons]))


def _of_no_object(found: Mapping[str, str], raw: bytes) -> Problems:
    if not raw.strip():
        text = "the body is empty; send a JSON object"
    elif _FORM.match(raw):
        text = "the body is a form; send JSON, with Content-Type: application/json"
    else:
        text = "; ".join(f"{field} {problem}" for field, problem in found.items())
    return Problems(text, text)


def _parsed(raw: bytes) -> object:
    try:
        return from_json(raw)
    except ValueError:
        return None


def _value(field: str, body: Mapping[str, object]) -> str:
    """The value of a wrong field in brackets; empty where the client sent none."""
    if field not in body:
        return ""
    value = body[field]
    quote = quoted_card if body.get("payment_option") in _CARD_OPTIONS else quoted
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


def _further_problems(model: type[PaymentFields], raw: bytes) -> Iterator[tuple[str, str]]:
    """What does not depend on the choice that could not be made."""
    try:
        model.model_validate_json(raw)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            yield _problem(detail)


_PATTERNS = {
    REQUEST_TIME: (
        "must be a date and time such as 2026-01-31 09:30, 2026-01-31 09:30:00 "
        "or 2026-01-31T09:30:00Z"
    ),
}


_WORDS = {
    "missing": _REQUIRED,
    "string_type": "must be a string",
    "float_type": "must be a number, without quotes",
    "greater_than": "must be a number above 0",
    "finite_number": "must be a number above 0",
    "int_type": "must be an integer, without quotes",
    "int_from_float": "must be an integer",
}


def _problem(detail: ErrorDetails) -> tuple[str, str]:
    """One field and what is wrong with it."""
    kind, context = detail["type"], detail.get("ctx", {})
    names = [part for part in detail["loc"] if part and isinstance(part, str)]
    field = names[-1] if names else "the body"
    if kind in _WORDS:
        return field, _WORDS[kind]
    match kind:
        case "union_tag_not_found":
            return str(context["discriminator"]).strip("'"), _REQUIRED
        case "union_tag_invalid":
            tags = f"must be one of {context['expected_tags']}"
            return str(context["discriminator"]).strip("'"), tags
        case "literal_error":
            return field, f"must be one of {context['expected']}".replace(" or ", ", ")
        case "string_pattern_mismatch":
            return field, _PATTERNS.get(context["pattern"], "must not be blank, nor hold a NUL")
        case "json_invalid":
            return "the body", f"is not valid JSON: {context['error']}"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "the body", "must be a JSON object"
        case _:
            return field, detail["msg"].replace("Input should", "must").replace("Value", "value")
