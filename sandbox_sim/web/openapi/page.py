"""The OpenAPI document as HTML, with a form for each request that the page can send."""

import json
import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, Final

from markupsafe import Markup

from sandbox_sim.operations import ACTIONS, Operation
from sandbox_sim.web.openapi.document import REF, Schema
from sandbox_sim.web.routes import CONTROL_PREFIX, JSON

# The methods that the page can send; the answers to HEAD and OPTIONS have no body.
_SENT: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_PARAGRAPHS: Final = re.compile(r"\n\n(?:- )?|\n- ")


def content_of(document: Schema) -> Markup:
    """The content of the page; every operation and every schema has an anchor."""
    groups = [tag["name"] for tag in document["tags"]]
    operations = list(_operations(document))
    sections = [
        f'<section><h2 id="{_anchor(group)}">{escape(group)}</h2>'
        + "".join(
            _operation_html(document, *each) for each in operations if group in each[2]["tags"]
        )
        + "</section>"
        for group in groups
    ]
    schemas = document["components"]["schemas"]
    sections += [
        '<section><h2 id="schemas">Schemas</h2>',
        *(_schema_html(name, schemas[name]) for name in sorted(schemas)),
        "</section>",
    ]
    contents = "".join(_entry(group) for group in [*groups, "Schemas"])
    about = _text(document["info"]["description"])
    nav = f'<nav aria-label="Contents"><ul>{contents}</ul></nav>'
    return Markup(nav + about + "".join(sections))  # noqa: S704 -- every value is escaped above


def _operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


def _entry(name: str) -> str:
    return f'<li><a href="#{_anchor(name)}">{escape(name)}</a></li>'


def _anchor(name: str) -> str:
    return re.sub(r"\W+", "-", name.lower())


def _text(markdown: str) -> str:
    """HTML of the Markdown that descriptions use: paragraphs, items as paragraphs, and code."""
    parts = [part.strip() for part in _PARAGRAPHS.split(markdown)]
    return "".join(f"<p>{_inline(part)}</p>" for part in parts if part)


def _inline(markdown: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(markdown))


def _operation_html(document: Schema, method: str, path: str, operation: Schema) -> str:
    parts = [_security(operation["security"]), _form(document, method, path, operation)]
    if operation["parameters"]:
        rows = (_parameter(each) for each in operation["parameters"])
        parts.append(f"<h4>Parameters</h4>{_fields(rows)}")
    if "requestBody" in operation:
        body = operation["requestBody"]
        optional = "" if body["required"] else " (optional)"
        parts.append(f"<h4>Body{optional}</h4><ul>{_content(body['content'])}</ul>")
    parts += [_callback(name, each) for name, each in operation.get("callbacks", {}).items()]
    parts.append("<h4>Answers</h4><dl>")
    for status, given in operation["responses"].items():
        response = _resolved(given, document)
        parts.append(f"<dt><code>{status}</code></dt><dd>{_inline(response['description'])}")
        parts.append(f"<ul>{_content(response.get('content', {}))}</ul></dd>")
    parts.append("</dl>")
    return (
        f'<details id="{operation["operationId"]}"><summary>'
        f'<b class="{method.lower()}">{method}</b> <code>{escape(path)}</code> '
        f"{_inline(operation['summary'])}</summary>{''.join(parts)}</details>"
    )


def _form(document: Schema, method: str, path: str, operation: Schema) -> str:
    """The form that sends the request; empty if its answer is not JSON."""
    if operation["security"] == [{"client": []}]:
        first = next(each for each in (*ACTIONS, *Operation) if each.row.path == path)
        return f'<p><button data-send-first="{first.value}" hidden>Send a request…</button></p>'
    answers = (
        _resolved(each, document)
        for status, each in operation["responses"].items()
        if status.startswith("2")
    )
    is_json = any(JSON in each.get("content", {}) for each in answers)
    content = operation.get("requestBody", {}).get("content", {JSON: {}})
    if method not in _SENT or not is_json or JSON not in content:
        return ""
    name = operation["operationId"]
    fields = [_field(name, each) for each in operation["parameters"]]
    if "requestBody" in operation:
        body = json.dumps(_example(content[JSON]["schema"], document), indent=2)
        fields.append(
            f'<label for="{name}-body">Body</label>'
            f'<textarea id="{name}-body" name="body" spellcheck="false">{escape(body)}</textarea>'
        )
    below = path.removeprefix(f"{CONTROL_PREFIX}/")
    return (
        f'<form data-try data-method="{method}" data-path="{escape(below)}" hidden>'
        f'{"".join(fields)}<div class="acts"><button>Send</button></div>'
        '<pre class="answer" role="status" tabindex="0" aria-label="Answer" hidden></pre></form>'
    )


def _field(operation: str, parameter: Schema) -> str:
    name, place = escape(parameter["name"]), parameter["in"]
    if place not in {"path", "query"}:
        return ""
    needed = " required" if parameter["required"] else ""
    return (
        f'<label for="{operation}-{name}">{name}</label><input id="{operation}-{name}" '
        f'name="{name}" data-in="{place}" autocomplete="off"{needed}>'
    )


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


def _resolved(response: Schema, document: Schema) -> Schema:
    reference = response.get("$ref")
    if reference is None:
        return response
    shared: Schema = document["components"]["responses"][reference.rpartition("/")[2]]
    return shared


def _security(requirements: list[dict[str, Any]]) -> str:
    schemes = {name for requirement in requirements for name in requirement}
    if "client" in schemes:
        return "<p>HTTP Basic: client key and secret key.</p>"
    if "control" in schemes:
        return "<p>Bearer token, if the setting <code>control_token</code> is set.</p>"
    return "<p>No credentials.</p>"


def _parameter(parameter: Schema) -> tuple[str, Schema, bool]:
    described = {"description": parameter.get("description", ""), **parameter["schema"]}
    return f"{parameter['name']} ({parameter['in']})", described, parameter["required"]


def _content(content: Schema) -> str:
    return "".join(
        f"<li><code>{escape(media_type)}</code> {_type(each.get('schema', {}))}</li>"
        for media_type, each in content.items()
    )


def _callback(name: str, callback: Schema) -> str:
    ((address, item),) = callback.items()
    body = item["post"]["requestBody"]["content"]
    return (
        f"<h4>Callback: {escape(name)}</h4><p><b>POST</b> <code>{escape(address)}</code> "
        f"{_inline(item['post']['description'])}</p><ul>{_content(body)}</ul>"
    )


def _schema_html(name: str, schema: Schema) -> str:
    fields = (
        (field, each, field in schema.get("required", ()))
        for field, each in schema.get("properties", {}).items()
    )
    content = _fields(fields) if "properties" in schema else f"<p>{_type(schema)}</p>"
    about = _text(schema.get("description", ""))
    return f'<details id="schema-{name}"><summary>{name}</summary>{about}{content}</details>'


def _fields(fields: Iterable[tuple[str, Schema, bool]]) -> str:
    rows = "".join(
        f"<dt><code>{escape(name)}</code>{' <i>required</i>' if required else ''}</dt>"
        f"<dd>{_type(schema)}{_described(schema)}</dd>"
        for name, schema, required in fields
    )
    return f"<dl>{rows}</dl>" if rows else "<p>No fields.</p>"


def _described(schema: Schema) -> str:
    """The description of a field, and its default."""
    text = schema.get("description", "")
    default = json.dumps(schema.get("default", "")).strip('"')
    end = f" (default <code>{escape(default)}</code>)" if default else ""
    return f": {_inline(text)}{end}" if text else end


def _type(schema: Schema) -> str:
    """A schema in a few words, with links to those that have a name."""
    match schema:
        case {"$ref": str(reference)}:
            name = reference.removeprefix(REF)
            return f'<a href="#schema-{name}">{name}</a>'
        case {"oneOf": list(options)} | {"anyOf": list(options)}:
            return " or ".join(map(_type, options))
        case {"allOf": [first, *_]}:
            return _type(first)
        case {"const": value}:
            return f"<code>{escape(str(value))}</code>"
        case {"enum": list(values)}:
            return ", ".join(f"<code>{escape(str(value))}</code>" for value in values)
        case {"type": "array", "items": items}:
            return f"array of {_type(items)}"
        case {"type": "object", "properties": properties}:
            inner = ", ".join(
                f"<code>{escape(name)}</code> {_type(each)}" for name, each in properties.items()
            )
            return f"object with {inner}" if inner else "object"
        case {"type": list(names)}:
            return " or ".join(names)
        case {"type": str(name)}:
            return name
        case _:
            return "anything"
