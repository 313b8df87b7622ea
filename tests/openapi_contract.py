"""Checks every answer that the tests see against the OpenAPI document."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema_rs
from aiohttp import ClientResponse

from sandbox_sim.bootstrap import Gateway
from sandbox_sim.settings.schema import Settings
from sandbox_sim.web.app import ROUTES
from sandbox_sim.web.openapi.document import openapi_document
from sandbox_sim.web.openapi.routes import ServerFacts
from sandbox_sim.web.routes import Route

Schema = dict[str, Any]
_DOCUMENT = "urn:openapi"
# The base path and the contract of each server of the tests, by port.
_contracts: dict[int, tuple[str, "Contract"]] = {}
# By what a document depends on: production adds refusals.
_made: dict[tuple[ServerFacts, bool], "Contract"] = {}


def register(port: int, gateway: Gateway, settings: Settings) -> None:
    """Check every answer of the gateway on this port from now on."""
    facts = ServerFacts(reject_status=settings.sandbox_reject_status)
    key = facts, settings.production
    if key not in _made:
        _made[key] = Contract(gateway.app[ROUTES](), facts)
    _contracts[port] = (settings.base_path, _made[key])


def check(
    port: int | None, method: str, path: str, status: int, headers: Mapping[str, str], body: bytes
) -> None:
    """Fail if the document does not allow an answer; header names are in lower case."""
    if port in _contracts:
        base_path, contract = _contracts[port]
        contract.check(method, path, status, headers, body, base_path)


class CheckedResponse(ClientResponse):
    """An answer that is checked when it is read."""

    async def read(self) -> bytes:
        body = await super().read()
        headers = {name.lower(): value for name, value in self.headers.items()}
        check(self.url.port, self.method, self.url.raw_path, self.status, headers, body)
        return body


class Contract:
    """The OpenAPI document, in which objects have only the fields that it names."""

    def __init__(self, routes: Sequence[Route], facts: ServerFacts) -> None:
        self.document = openapi_document(routes, facts)
        components = _closed(self.document["components"])
        self._registry = jsonschema_rs.Registry([(_DOCUMENT, {"components": components})])
        self._validators: dict[tuple[str, str], Any] = {}
        self._patterns = [
            (re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))), path)
            for path in sorted(self.document["paths"], key=lambda path: path.count("{"))
            if "{" in path
        ]

    def check(
        self,
        method: str,
        path: str,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        base_path: str = "",
    ) -> None:
        """Fail if the document does not allow an answer; a path may begin with the base path."""
        if headers.get("x-sandbox-request-id") == "unread":
            return  # it was not HTTP
        item = self._item(path) or self._item(path.removeprefix(base_path))
        operation: Schema | None = item.get(method.lower())
        assert operation or status >= 400, f"{method} {path} is not in the document"
        if operation is None:
            return
        asked = f"{method} {path}: HTTP {status}"
        assert str(status) in operation["responses"], f"{asked} is not in the document"
        response = self._resolved(operation["responses"][str(status)])
        for name in response.get("headers", {}):
            assert name.lower() in headers or name == "Retry-After", f"{asked} has no {name}"
        if method == "HEAD" or "content" not in response:
            return
        media_type = headers["content-type"].partition(";")[0]
        assert media_type in response["content"], f"{asked} has the type {media_type}"
        if media_type != "application/json" or _is_spoiled(headers, body):
            return
        validator = self._validator(operation["operationId"], str(status), response)
        problem = next(validator.iter_errors(json.loads(body)), None)
        assert problem is None, f"{asked}: {problem}"

    def _item(self, path: str) -> Schema:
        """Return the operations of a path, by method; empty for an unknown path."""
        paths: Schema = self.document["paths"]
        if path not in paths:
            found = (name for pattern, name in self._patterns if pattern.fullmatch(path))
            path = next(found, "")
        item: Schema = paths.get(path, {})
        return item

    def _resolved(self, response: Schema) -> Schema:
        if "$ref" not in response:
            return response
        name = response["$ref"].rpartition("/")[2]
        shared: Schema = self.document["components"]["responses"][name]
        return shared

    def _validator(self, operation: str, status: str, response: Schema) -> Any:
        key = (operation, status)
        if key not in self._validators:
            schema = _closed(response["content"]["application/json"].get("schema", {}))
            self._validators[key] = jsonschema_rs.Draft202012Validator(
                schema, registry=self._registry
            )
        return self._validators[key]


def _is_spoiled(headers: Mapping[str, str], body: bytes) -> bool:
    """Return True if a fault cut off the JSON."""
    if headers.get("x-sandbox-rule") != "fault":
        return False
    try:
        json.loads(body)
    except ValueError:
        return True
    return False


def _closed(schema: Any) -> Any:
    """Return the schema with objects that allow only the fields that it names.

    Its references name the document, so that all validators share the components in a registry.
    """
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if isinstance(closed.get("$ref"), str):
        closed["$ref"] = _DOCUMENT + closed["$ref"]
    if closed.get("type") == "object" and "properties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed
