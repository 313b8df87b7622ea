"""The wrong fields of a request body, in one sentence. Source: D5."""

from collections.abc import Iterator

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sandbox_sim.domain.timestamps import REQUEST_TIME
from sandbox_sim.web.api.request_models import PaymentFields, TestCardCollection, WithNumber

# Where a tag of the union is wrong, the model that finds the other wrong fields, by the tags that
# are right; below CTM and a card option there is only the card.
_STAND_IN: dict[tuple[int | str, ...], type[PaymentFields]] = {
    (): PaymentFields,
    ("CTM",): WithNumber,
    ("MTC",): WithNumber,
}


def problems(error: ValidationError, raw: bytes) -> str:
    """Name every wrong field of the body and its problem, in one sentence."""
    details = error.errors(include_url=False, include_input=False)
    found = dict(map(_problem, details))
    for detail in details:
        if detail["type"].startswith("union_tag"):
            stand_in = _STAND_IN.get(detail["loc"], TestCardCollection)
            found = dict(_further_problems(stand_in, raw)) | found
    return "; ".join(f"{field} {problem}" for field, problem in found.items())


def _further_problems(model: type[PaymentFields], raw: bytes) -> Iterator[tuple[str, str]]:
    """The wrong fields that do not depend on the wrong tag."""
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
    "missing": "is required",
    "string_type": "must be a string",
    "float_type": "must be a number, without quotes",
    "greater_than": "must be a number above 0",
    "finite_number": "must be a number above 0",
    "int_type": "must be an integer, without quotes",
    "int_from_float": "must be an integer",
}


def _problem(detail: ErrorDetails) -> tuple[str, str]:
    """One field and its problem."""
    kind, context = detail["type"], detail.get("ctx", {})
    names = [part for part in detail["loc"] if part and isinstance(part, str)]
    field = names[-1] if names else "the body"
    if kind in _WORDS:
        return field, _WORDS[kind]
    match kind:
        case "union_tag_not_found":
            return str(context["discriminator"]).strip("'"), "is required"
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
