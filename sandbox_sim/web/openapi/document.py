"""The OpenAPI 3.1 document of the interface and the control API, made from the table of routes."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from sandbox_sim import __version__
from sandbox_sim.web.openapi.answers import HEADERS, control_responses, interface_responses
from sandbox_sim.web.openapi.callbacks import callbacks_of
from sandbox_sim.web.openapi.inputs import Models
from sandbox_sim.web.openapi.json_schema import Schema, Schemas
from sandbox_sim.web.openapi.routes import ServerFacts
from sandbox_sim.web.routes import ANY_METHOD, CONTROL_PREFIX, Access, Body, Route

_METHODS: Final = ("GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE")
_ABOUT: Final = """\
A stand-in for a Ghanaian payment, airtime, bill and SMS gateway, and the control API of it.

- The operations of the gateway take HTTP Basic credentials, and a `User-Agent` that is not blank. \
Every answer has `response_code` and `response_message`. An override can ask for any rejection, \
and a fault for HTTP 429, 500, 502 or 503, so every operation lists all of them.
- The paths under `/_sandbox/` are the control API. Where the setting `control_token` is set, it \
is the bearer token of these paths.
- JSON types are strict. An integer has no fraction: the server refuses `55.0`, which JSON Schema \
also counts as an integer.
"""
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
    responses = _share(paths)
    return {
        "openapi": "3.1.0",
        "info": {"title": "sandbox_sim", "version": __version__, "description": _ABOUT},
        "servers": [{"url": facts.base_path or "/"}],
        "tags": [{"name": name} for name in dict.fromkeys(route.group for route in routes)],
        "paths": paths,
        "components": {
            "schemas": {**models.components, **schemas.components},
            "responses": responses,
            "headers": HEADERS,
            "securitySchemes": {
                "client": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "client_key and secret_key (D2)",
                },
                "control": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "the setting control_token, where one is set",
                },
            },
        },
    }


def _share(paths: Schema) -> Schema:
    """Move responses that several operations have to components, so that the document is short."""
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
    taken = {each.method for each in routes if each.path == route.path}
    return [method for method in _METHODS if method not in taken]


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
    schema = _INTEGER if name == "service_id" else {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _request_body(body: Body, models: Models, schemas: Schemas) -> Schema:
    schema: Schema = {}
    if models.has(body):
        schema = models.body(body)
    elif body.model is not None:
        schema = schemas.of(body.model)
    return {
        "required": not body.optional,
        "content": {body.media_type: {"schema": schema}},
    }
