"""The answers of a route, as OpenAPI `responses`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sandbox_sim.domain.control.faults import FAULT_STATUSES
from sandbox_sim.domain.response_codes import ACCEPTED, CATALOGUE, Reply
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.web.control.errors import errors_of
from sandbox_sim.web.openapi.json_schema import REF, Schema, Schemas
from sandbox_sim.web.routes import JSON, ErrorCode, ListOf, Route

# What every operation of the interface can answer: status, code and reason.
_COMMON: Final = (
    ErrorCode(401, "100", "the credentials are missing or wrong (D3)"),
    ErrorCode(403, "403", "User-Agent is missing or blank (D4)"),
    ErrorCode(413, "400", "the body is above the setting max_body_bytes (D5)"),
    ErrorCode(429, "429", "too many requests (D10)"),
    ErrorCode(500, "500", "a fault of the server"),
)
_FAULTS: Final = tuple(
    ErrorCode(status, "500", "a fault") for status in FAULT_STATUSES if status >= 500
)
_SERVICE: Final = ErrorCode(403, "403", "the credentials are not for this service (D2)")
_ON_REQUEST: Final = "only where an override or a fault of the control API asks for it"
_ALWAYS: Final = ("X-Sandbox-Rule", "X-Sandbox-Request-Id")
HEADERS: Final[Mapping[str, Schema]] = {
    "X-Sandbox-Rule": {
        "required": True,
        "description": "the rule that decided the answer, such as sandbox.3 or D5",
        "schema": {"type": "string"},
    },
    "X-Sandbox-Request-Id": {
        "required": True,
        "description": "the id of the request in the journal",
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "seconds to wait",
        "schema": {"type": "integer", "minimum": 0},
    },
}


def interface_responses(route: Route, schemas: Schemas, reject_status: int) -> Schema:
    """The answers of an operation of the interface, by HTTP status."""
    found: dict[int, list[Schema]] = defaultdict(list)
    for answer in route.answers:
        found[answer.status].append(schemas.of(answer.model))
    codes = _codes_by_status(route.operations[0], reject_status)
    reasons = _reasons(route, reject_status)
    responses = {}
    for status in sorted({*found, *codes}):
        if codes[status]:
            found[status].append(_rejection(status, codes[status], schemas))
        options = found[status]
        names = [*_ALWAYS, *(["Retry-After"] if status == 429 else [])]
        responses[str(status)] = {
            "description": _description(route, status, reasons[status]),
            "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names},
            "content": {JSON: {"schema": options[0] if len(options) == 1 else {"anyOf": options}}},
        }
    return responses


def _codes_by_status(operation: Operation, reject_status: int) -> Mapping[int, Sequence[str]]:
    """Every rejection that an override or a fault can ask for, beside those of the rules."""
    codes: dict[int, list[str]] = defaultdict(list)
    for code, row in CATALOGUE.items():
        if code in ACCEPTED:
            continue
        own_status = Reply(code, "D6", "").from_operation(operation).http_status
        codes[own_status or (reject_status if row.sandbox else row.http_status)].append(code)
    for status, code, _when in (*_COMMON, *_FAULTS):
        codes[status] += [] if code in codes[status] else [code]
    return codes


def _reasons(route: Route, reject_status: int) -> Mapping[int, Sequence[str]]:
    reasons: dict[int, list[str]] = defaultdict(list)
    errors = (*route.errors, *_COMMON)
    if not any(error.code == "403" for error in route.errors):
        errors += (_SERVICE,)
    for status, code, when in errors:
        sandbox = CATALOGUE[code].sandbox
        reasons[reject_status if sandbox else status].append(f"{code}: {when}")
    return reasons


def _description(route: Route, status: int, reasons: Sequence[str]) -> str:
    done = [
        f"{_code_of(answer.model)}: done" for answer in route.answers if answer.status == status
    ]
    return "; ".join([*dict.fromkeys(done), *reasons]) or _ON_REQUEST


def _code_of(model: Any) -> str:
    (code,) = model.__annotations__["response_code"].__args__
    return str(code)


def _rejection(status: int, codes: Sequence[str], schemas: Schemas) -> Schema:
    name = f"Rejection{status}"
    schema = {
        "type": "object",
        "description": "A rejection, with nothing but these two fields.",
        "properties": {
            "response_code": {"type": "string", "enum": list(codes)},
            "response_message": {"type": "string"},
        },
        "required": ["response_code", "response_message"],
    }
    if schemas.components.setdefault(name, schema) != schema:
        name = f"Rejection{status}Sms"
        schemas.components[name] = schema
    return {"$ref": REF + name}


def control_responses(route: Route, schemas: Schemas) -> Schema:
    """The answers of a route of the control API, by HTTP status."""
    responses: dict[str, Schema] = {}
    for answer in route.answers:
        response = responses.setdefault(str(answer.status), {"description": answer.when})
        if answer.media_type is not None and route.method != "HEAD":
            content = {"schema": _model(answer.model, schemas)} if answer.model else {}
            response.setdefault("content", {})[answer.media_type] = content
    by_status: dict[int, list[ErrorCode]] = defaultdict(list)
    for error in errors_of(route):
        by_status[error.status].append(error)
    for status, errors in by_status.items():
        response = responses.setdefault(str(status), {"description": ""})
        reasons = [response["description"], *(f"`{each.code}`: {each.when}" for each in errors)]
        response["description"] = "; ".join(filter(None, reasons))
        if route.method != "HEAD":
            schema = _error([each.code for each in errors], schemas)
            response.setdefault("content", {})[JSON] = {"schema": schema}
    return dict(sorted(responses.items()))


def _model(model: Any, schemas: Schemas) -> Schema:
    if not isinstance(model, ListOf):
        return schemas.of(model)
    properties: Schema = {
        model.plural: {"type": "array", "items": schemas.of(model.item)},
    }
    if model.has_next:
        text = "the value of `after` for the next page; null on the last one"
        properties["next"] = {"type": ["string", "null"], "description": text}
    if model.has_dropped:
        text = "how many older ones made room for newer ones"
        properties["dropped"] = {"type": "integer", "description": text}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _error(codes: Iterable[str], schemas: Schemas) -> Schema:
    schemas.components.setdefault(
        "Error",
        {
            "type": "object",
            "description": "An error of the control API.",
            "properties": {
                "error": {
                    "type": "object",
                    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                    "required": ["code", "message"],
                }
            },
            "required": ["error"],
        },
    )
    code = {"properties": {"code": {"enum": list(codes)}}}
    return {"allOf": [{"$ref": REF + "Error"}, {"properties": {"error": code}}]}
