"""What the page of the OpenAPI document shows: the names in its template, `reference.html`."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup, escape

from sandbox_sim.operations import ACTIONS, Operation
from sandbox_sim.web.openapi.document import REF, Schema
from sandbox_sim.web.routes import CONTROL_PREFIX, JSON

# The methods that the page can send; the answers to HEAD and OPTIONS have no body.
_SENDABLE: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_PARAGRAPHS: Final = re.compile(r"\n\n(?:- )?|\n- ")


def template_context(document: Schema) -> Mapping[str, Any]:
    """The values of the template, which gives every operation and every schema an anchor."""
    return {
        "about": document["info"]["description"],
        "groups": [tag["name"] for tag in document["tags"]],
        "operations": list(_operations(document)),
        "schemas": document["components"]["schemas"],
        "anchor": lambda name: re.sub(r"\W+", "-", name.lower()),
        "inline": _inline,
        "paragraphs": _paragraphs,
    }


def _paragraphs(markdown: str) -> Markup:
    """HTML of the Markdown that descriptions use: paragraphs, items as paragraphs, and code."""
    parts = (part.strip() for part in _PARAGRAPHS.split(markdown))
    return Markup("").join(Markup("<p>{}</p>").format(_inline(part)) for part in parts if part)


def _inline(markdown: str) -> Markup:
    code = re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(markdown)))
    return Markup(code)  # noqa: S704 -- the text is escaped


def _operations(document: Schema) -> Iterator[Schema]:
    """Each operation with its path, its method, its answers, and what its form needs."""
    for path, item in document["paths"].items():
        for name, operation in item.items():
            method, responses = name.upper(), operation["responses"]
            answers = {status: _resolve(each, document) for status, each in responses.items()}
            content = operation.get("requestBody", {}).get("content", {JSON: {}})
            of_client = operation["security"] == [{"client": []}]
            is_json = any(
                status.startswith("2") and JSON in each.get("content", {})
                for status, each in answers.items()
            )
            schema = content.get(JSON, {}).get("schema", {})
            first = (each.value for each in (*ACTIONS, *Operation) if each.row.path == path)
            yield {
                **operation,
                "path": path,
                "below": path.removeprefix(f"{CONTROL_PREFIX}/"),
                "method": method,
                "answers": answers,
                "first": next(first, None),
                "has_form": not of_client and is_json and method in _SENDABLE and JSON in content,
                "example": json.dumps(_example(schema, document), indent=2),
            }


def _example(schema: Schema, document: Schema) -> Any:
    """An example that fits a schema; objects have only their required fields."""
    match schema:
        case {"$ref": str(reference)}:
            return _example(
                document["components"]["schemas"][reference.removeprefix(REF)], document
            )
        case {"default": value} | {"const": value} | {"enum": [value, *_]}:
            return value
        case {"anyOf": [first, *_]} | {"oneOf": [first, *_]} | {"allOf": [first, *_]}:
            return _example(first, document)
        case {"type": "object"}:
            fields = schema.get("properties", {})
            return {name: _example(fields[name], document) for name in schema.get("required", ())}
        case {"type": "array"}:
            return []
        case {"type": "boolean"}:
            return True
        case {"type": "integer" | "number"}:
            return 55 if "service" in schema.get("description", "") else 1
    return ""


def _resolve(response: Schema, document: Schema) -> Schema:
    reference = response.get("$ref")
    if reference is None:
        return response
    shared: Schema = document["components"]["responses"][reference.rpartition("/")[2]]
    return shared
