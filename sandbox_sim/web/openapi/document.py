"""The OpenAPI 3.1 document of the interface and the control API, made from the table of routes.

The JSON Schema of a `TypedDict` is made here, because pydantic supports that only from Python 3.12.
"""

import inspect
import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from importlib.resources import files
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core.core_schema import ModelSchema, WithDefaultSchema

from sandbox_sim import __version__
from sandbox_sim.explanations import field_meanings
from sandbox_sim.operations import Operation
from sandbox_sim.overrides.faults import FAULT_STATUSES
from sandbox_sim.values.response_codes import ACCEPTED, CATALOGUE, Reply
from sandbox_sim.values.vocabulary import MAX_IDENTIFIER
from sandbox_sim.web.api.responses import CALLBACK_MODELS
from sandbox_sim.web.control.errors import errors_of
from sandbox_sim.web.control.input import LARGEST_INTEGER
from sandbox_sim.web.openapi.routes import ServerFacts
from sandbox_sim.web.routes import (
    ANY_METHOD,
    CONTROL_PREFIX,
    JSON,
    Access,
    Body,
    ErrorCode,
    ListOf,
    Query,
    Route,
)

Schema = dict[str, Any]

REF: Final = "#/components/schemas/"
_FIXED: Final[Schema] = tomllib.loads(files(__package__).joinpath("fixed.toml").read_text("utf-8"))
_TYPES: Final[dict[Any, Schema]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    None: {"type": "null"},
    object: {},
    Any: {},
}


class Schemas:
    """Makes schemas; each `TypedDict` becomes a component that the schemas refer to."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}
        self._models: dict[str, Any] = {}

    def schema_of(self, annotation: Any) -> Schema:
        """The schema of an annotation.

        In `Annotated`, a text is the description, and an enumeration or a tuple lists the values.

        Raises:
            ValueError: two different models have one name.
        """
        if is_typeddict(annotation):
            return self._reference(annotation)
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self._annotated(arguments[0], arguments[1:])
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin in {Union, UnionType}:
            return self._union(arguments)
        if origin in {list, Sequence}:
            return {"type": "array", "items": self.schema_of(arguments[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.schema_of(arguments[1])}
        return dict(_TYPES[annotation])

    def _reference(self, model: Any) -> Schema:
        name = model.__name__
        if self._models.setdefault(name, model) is not model:
            raise ValueError(f"two models have the name {name}")
        if name not in self.components:
            self.components[name] = {}  # so that a model may refer to itself
            self.components[name] = self._component(model)
        return {"$ref": REF + name}

    def _component(self, model: Any) -> Schema:
        hints = get_type_hints(model, include_extras=True)
        required = [name for name in hints if name in model.__required_keys__]
        properties = {name: self.schema_of(_value_type(hint)) for name, hint in hints.items()}
        return {
            "type": "object",
            "description": inspect.getdoc(model),
            "properties": properties,
            "required": required,
        }

    def _annotated(self, annotation: Any, extras: Sequence[object]) -> Schema:
        schema = self.schema_of(annotation)
        for extra in extras:
            match extra:
                case str():
                    schema["description"] = extra
                case tuple():
                    nothing = [None] if NoneType in get_args(annotation) else []
                    schema["enum"] = [*extra, *nothing]
                case type() if issubclass(extra, Enum):
                    values = tuple(each.value for each in extra)
                    schema |= self._annotated(annotation, [values, *_meanings_of(extra)])
        return schema

    def _union(self, members: Sequence[Any]) -> Schema:
        schemas = [self.schema_of(member) for member in members]
        if all(schema.keys() == {"type"} for schema in schemas):
            return {"type": [schema["type"] for schema in schemas]}
        return {"anyOf": schemas}


def _value_type(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is NotRequired else hint


_REF_TEMPLATE = REF + "{model}"

_NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": LARGEST_INTEGER}


# The beginning of a line of a docstring that says what a field or a value means.
_FIELD_LINE: Final = re.compile(r"^([\w-]+): ", re.MULTILINE)


def _parse_docstring(model: type) -> tuple[str, Mapping[str, str]]:
    """The description in a docstring, and the meanings of fields or values in lines `name: text`.

    The docstrings of the bases of a model have the meanings of their fields.
    """
    about, meanings = "", dict[str, str]()
    for each in reversed(model.__mro__):
        about, *parts = _FIELD_LINE.split(inspect.cleandoc(each.__doc__ or ""))
        texts = (" ".join(text.split()).removesuffix(".") for text in parts[1::2])
        meanings |= dict(zip(parts[::2], texts, strict=True))
    return about.strip(), meanings


def _meanings_of(values: type[Enum]) -> Sequence[str]:
    """The meanings of the values in one text, if their docstring has them."""
    meanings = _parse_docstring(values)[1]
    known = [each.value for each in values if each.value in meanings]
    texts = [f"`{value}`: {meanings[value]}" for value in known]
    return ["; ".join(texts)] if texts else []


class _BriefJsonSchema(GenerateJsonSchema):
    """Leaves out the titles of pydantic, and defaults that are objects or null.

    The meaning of a field comes from the docstring of its model. The description of a field says
    what an input must be.
    """

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        about, meanings = _parse_docstring(schema["cls"])
        made["description"] = about
        for name, field in made.get("properties", {}).items():
            texts = (meanings.get(name), field.get("description"))
            if description := "; ".join(filter(None, texts)):
                field["description"] = description
        return made

    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        if isinstance(schema.get("default"), str | int | float):
            return super().default_schema(schema)
        return self.generate_inner(schema["schema"])


class Models:
    """The pydantic models of the inputs; `components` has the schema of each."""

    def __init__(self, inputs: Iterable[Query | Body]) -> None:
        models = [each.model for each in inputs]
        self._schemas, defined = models_json_schema(
            [(model, "validation") for model in dict.fromkeys(filter(_is_model, models))],
            ref_template=_REF_TEMPLATE,
            schema_generator=_BriefJsonSchema,
        )
        self.components: dict[str, Schema] = defined.get("$defs", {})
        self._unions: dict[int, Schema] = {}
        for adapter in (each for each in models if isinstance(each, TypeAdapter)):
            self._unions[id(adapter)] = self._union(adapter)
        for schema in self.components.values():
            schema.pop("title", None)

    def has(self, body: Body) -> bool:
        """Whether a body is read by pydantic."""
        return _is_model(body.model) or isinstance(body.model, TypeAdapter)

    def body(self, body: Body) -> Schema:
        """The schema of a body."""
        if isinstance(body.model, TypeAdapter):
            return self._unions[id(body.model)]
        schema = self._schemas[body.model, "validation"]
        if not body.match_fields:
            return schema
        names = "|".join(map(re.escape, body.match_fields))
        match = {
            "propertyNames": {"pattern": f"^({names})(\\..*)?$"},
            "properties": body.match_schemas,
        }
        return {"allOf": [schema, {"properties": {"match": match}}]}

    def parameters(self, query: Query) -> Sequence[Schema]:
        reference = self._schemas[query.model, "validation"]["$ref"]
        model = self.components[reference.removeprefix(REF)]
        required = model.get("required", ())
        fields = {name: _not_null(schema) for name, schema in model.get("properties", {}).items()}
        for name in query.filters:
            schema = _filter_schema(query, name)
            fields.setdefault(name, {**schema, "description": f"only those with this {name}"})
        return [
            {
                "name": name,
                "in": "query",
                "required": name in required,
                **({"description": text} if (text := schema.pop("description", "")) else {}),
                "schema": schema,
            }
            for name, schema in fields.items()
        ]

    def _union(self, adapter: TypeAdapter[Any]) -> Schema:
        """A tagged union; unions within it become components, so that `mapping` can name them."""
        schema = adapter.json_schema(ref_template=_REF_TEMPLATE, schema_generator=_BriefJsonSchema)
        self.components |= schema.pop("$defs")
        return self._component_union(schema, "MakePayment")

    def _component_union(self, union: Schema, name: str) -> Schema:
        named: list[tuple[Schema, str]] = []
        mapping: dict[str, str] = {}
        for tag, choice in union["discriminator"]["mapping"].items():
            if isinstance(choice, str):
                mapping[tag] = choice
                continue
            reference = next((ref for known, ref in named if known == choice), None)
            if reference is None:
                component = name + tag.capitalize()
                self.components[component] = self._component_union(choice, component)
                reference = REF + component
                named.append((choice, reference))
            mapping[tag] = reference
        return {
            "oneOf": [{"$ref": reference} for reference in dict.fromkeys(mapping.values())],
            "discriminator": {**union["discriminator"], "mapping": mapping},
        }


def _is_model(model: Any) -> bool:
    return isinstance(model, type) and issubclass(model, BaseModel)


def _not_null(schema: Schema) -> Schema:
    """The schema of a field without null, which a query cannot contain."""
    schema = dict(schema)
    match [each for each in schema.pop("anyOf", ()) if each != {"type": "null"}]:
        case []:
            return schema
        case [option]:
            return {**option, **schema}
        case options:
            return {**schema, "anyOf": options}


def _filter_schema(query: Query, name: str) -> Schema:
    """The schema of a filter."""
    if name in query.numbers:
        return _NUMBER
    if name in query.switches:
        return {"type": "boolean"}
    if name in query.values:
        return {"type": "string", "enum": list(query.values[name])}
    return {"type": "string"}


def callbacks_of(schemas: Schemas) -> Schema:
    """The callback of a payment: its body depends on the setting `callback_profile` (D27)."""
    models = dict.fromkeys(CALLBACK_MODELS.values())
    content = {JSON: {"schema": {"anyOf": [schemas.schema_of(model) for model in models]}}}
    post = {**_FIXED["callback"], "requestBody": {"required": True, "content": content}}
    return {"outcome": {"{$request.body#/callback_url}": {"post": post}}}


# What every operation of the interface can answer: status, code and reason.
_COMMON_ERRORS: Final = (
    ErrorCode(401, "100", "the credentials are missing or wrong (D3)"),
    ErrorCode(403, "403", "a page or a Host that is not allowed (D42)"),
    ErrorCode(403, "403", "User-Agent is missing or blank (D4)"),
    ErrorCode(413, "400", "the body is larger than the setting max_body_bytes (D5)"),
    ErrorCode(415, "400", "the request has the header Content-Encoding (D42)"),
    ErrorCode(429, "429", "too many requests (D10)"),
    ErrorCode(500, "500", "an internal error of the server"),
)

_FAULT_ERRORS: Final = tuple(
    ErrorCode(status, "500", "a fault") for status in FAULT_STATUSES if status >= 500
)

_WRONG_SERVICE: Final = ErrorCode(403, "403", "the credentials are not for this service (D2)")

_ONLY_IF_SET: Final = "only if an override or a fault of the control API sets it"

_COMMON_HEADERS: Final = ("X-Sandbox-Rule", "X-Sandbox-Request-Id")


def interface_responses(route: Route, schemas: Schemas, reject_status: int) -> Schema:
    """The answers of an operation of the interface, by HTTP status."""
    by_status: dict[int, list[Schema]] = defaultdict(list)
    for answer in route.answers:
        by_status[answer.status].append(schemas.schema_of(answer.model))
    codes = _codes_by_status(route.operations[0], reject_status)
    reasons = _reasons(route, reject_status)
    responses = {}
    for status in sorted({*by_status, *codes}):
        if codes[status]:
            by_status[status].append(_rejection_schema(status, codes[status], schemas))
        options = by_status[status]
        names = [*_COMMON_HEADERS, *(["Retry-After"] if status == 429 else [])]
        responses[str(status)] = {
            "description": _description(route, status, reasons[status]),
            "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names},
            "content": {JSON: {"schema": options[0] if len(options) == 1 else {"anyOf": options}}},
        }
    return responses


def _codes_by_status(operation: Operation, reject_status: int) -> Mapping[int, Sequence[str]]:
    """Every rejection that the rules, an override or a fault can cause."""
    codes: dict[int, list[str]] = defaultdict(list)
    for code, row in CATALOGUE.items():
        if code in ACCEPTED:
            continue
        own_status = Reply(code, "D6", "").from_operation(operation).http_status
        codes[own_status or (reject_status if row.sandbox else row.http_status)].append(code)
    for status, code, _when in (*_COMMON_ERRORS, *_FAULT_ERRORS):
        codes[status] += [] if code in codes[status] else [code]
    return codes


def _reasons(route: Route, reject_status: int) -> Mapping[int, Sequence[str]]:
    reasons: dict[int, list[str]] = defaultdict(list)
    errors = (*route.errors, *_COMMON_ERRORS)
    if not any(error.code == "403" for error in route.errors):
        errors += (_WRONG_SERVICE,)
    for status, code, when in errors:
        sandbox = CATALOGUE[code].sandbox
        reasons[reject_status if sandbox else status].append(f"{code}: {when}")
    return reasons


def _description(route: Route, status: int, reasons: Sequence[str]) -> str:
    done = [
        f"{_code_of(answer.model)}: done" for answer in route.answers if answer.status == status
    ]
    return "; ".join([*dict.fromkeys(done), *reasons]) or _ONLY_IF_SET


def _code_of(model: Any) -> str:
    (code,) = model.__annotations__["response_code"].__args__
    return str(code)


def _rejection_schema(status: int, codes: Sequence[str], schemas: Schemas) -> Schema:
    name = f"Rejection{status}"
    schema = {
        "type": "object",
        "description": "A rejection, which has only these two fields.",
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
            content = {"schema": _answer_schema(answer.model, schemas)} if answer.model else {}
            response.setdefault("content", {})[answer.media_type] = content
    by_status: dict[int, list[ErrorCode]] = defaultdict(list)
    for error in errors_of(route):
        by_status[error.status].append(error)
    for status, errors in by_status.items():
        response = responses.setdefault(str(status), {"description": ""})
        reasons = [response["description"], *(f"`{each.code}`: {each.when}" for each in errors)]
        response["description"] = "; ".join(filter(None, reasons))
        if route.method != "HEAD":
            schema = _error_schema([each.code for each in errors])
            response.setdefault("content", {})[JSON] = {"schema": schema}
    return dict(sorted(responses.items()))


def _answer_schema(model: Any, schemas: Schemas) -> Schema:
    if not isinstance(model, ListOf):
        return schemas.schema_of(model)
    properties: Schema = {
        model.plural: {
            "type": "array",
            "description": model.order,
            "items": schemas.schema_of(model.item),
        },
    }
    if model.has_next:
        text = "the value of `after` for the next page; null on the last one"
        properties["next"] = {"type": ["string", "null"], "description": text}
    if model.has_dropped:
        text = "how many older records were removed to make room"
        properties["dropped"] = {"type": "integer", "description": text}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _error_schema(codes: Iterable[str]) -> Schema:
    code = {"properties": {"code": {"enum": list(codes)}}}
    return {"allOf": [{"$ref": REF + "Error"}, {"properties": {"error": code}}]}


def _describe_fields(components: Schema) -> None:
    """Give each field without a description the common meaning of its name."""
    meanings = field_meanings()
    for schema in components.values():
        for name, field in schema.get("properties", {}).items():
            if name in meanings and "$ref" not in field:
                field.setdefault("description", meanings[name])


_METHODS: Final = ("GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE")

_INTEGER: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}


def openapi_document(routes: Iterable[Route], facts: ServerFacts) -> Schema:
    """The document, as JSON."""
    routes = tuple(routes)
    models = Models([each for route in routes for each in (route.query, route.body) if each])
    schemas = Schemas()
    paths: dict[str, Schema] = {}
    for route in routes:
        for method in _methods_of(route, routes):
            item = paths.setdefault(route.path, {})
            item[method.lower()] = _operation(route, method, models, schemas, facts)
    responses = _share_responses(paths)
    components = {**models.components, **_FIXED["schemas"], **schemas.components}
    _describe_fields(components)
    document: Schema = _FIXED["document"]
    return {
        **document,
        "info": {**document["info"], "version": __version__},
        "servers": [{"url": facts.base_path or "/"}],
        "tags": [{"name": name} for name in dict.fromkeys(route.group for route in routes)],
        "paths": paths,
        "components": {**_FIXED["components"], "schemas": components, "responses": responses},
    }


def _share_responses(paths: Schema) -> Schema:
    """Move responses that several operations share to components, to shorten the document."""
    users: dict[str, list[tuple[Schema, str]]] = defaultdict(list)
    for responses in (each["responses"] for item in paths.values() for each in item.values()):
        for status, response in responses.items():
            users[f"{status} {json.dumps(response)}"].append((responses, status))
    shared: Schema = {}
    for places in users.values():
        responses, status = places[0]
        if len(places) > 1:
            name = f"Status{status}_{sum(each.startswith(f'Status{status}_') for each in shared)}"
            shared[name] = responses[status]
            for responses, status in places:
                responses[status] = {"$ref": f"#/components/responses/{name}"}
    return shared


def _methods_of(route: Route, routes: Iterable[Route]) -> Sequence[str]:
    if route.method != ANY_METHOD:
        return [route.method]
    used = {each.method for each in routes if each.path == route.path}
    return [method for method in _METHODS if method not in used]


def _operation(
    route: Route, method: str, models: Models, schemas: Schemas, facts: ServerFacts
) -> Schema:
    of_interface = route.access is Access.CLIENT
    operation: Schema = {
        "operationId": _operation_id(route, method),
        "summary": route.summary,
        "tags": [route.group],
        "security": _security(route, facts),
        "parameters": [
            *(_path_parameter(name) for name in route.parameters),
            *(models.parameters(route.query) if route.query is not None else []),
        ],
        "responses": interface_responses(route, schemas, facts.reject_status)
        if of_interface
        else control_responses(route, schemas),
    }
    if route.body is not None and method not in {"GET", "HEAD", "DELETE", "TRACE"}:
        operation["requestBody"] = _request_body(route.body, models, schemas)
    if of_interface and route.answers[0].status == 202:
        operation["callbacks"] = callbacks_of(schemas)
    return operation


def _operation_id(route: Route, method: str) -> str:
    words = re.findall(r"\w+", route.path.removeprefix(CONTROL_PREFIX))
    return "_".join(words if route.access is Access.CLIENT else [method.lower(), *words])


def _security(route: Route, facts: ServerFacts) -> list[dict[str, list[str]]]:
    match route.access:
        case Access.CLIENT:
            return [{"client": []}]
        case Access.CONTROL | Access.HANDSET:
            return [{"control": []}] if facts.needs_token else [{"control": []}, {}]
        case _:
            return []


def _path_parameter(name: str) -> Schema:
    schema: Schema = {"type": "string", "minLength": 1}
    if name == "service_id":
        schema = _INTEGER
    elif name == "name":
        schema["maxLength"] = MAX_IDENTIFIER
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _request_body(body: Body, models: Models, schemas: Schemas) -> Schema:
    schema: Schema = {}
    if models.has(body):
        schema = models.body(body)
    elif body.model is not None:
        schema = schemas.schema_of(body.model)
    return {
        "required": not body.optional,
        "content": {body.media_type: {"schema": schema}},
    }
