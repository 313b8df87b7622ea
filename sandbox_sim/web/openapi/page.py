"""The OpenAPI document as one HTML page, which needs neither scripts nor a network."""

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, Final

from sandbox_sim.web.openapi.json_schema import REF, Schema

_SHELL: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="docs/style.css"></head>
<body><header><h1>{title}</h1><p>Version {version}, <a href="openapi.json">OpenAPI 3.1</a></p>
</header><nav aria-label="Contents"><ul>{contents}</ul></nav><main>{main}</main></body></html>
"""
_PARAGRAPHS: Final = re.compile(r"\n\n(?:- )?|\n- ")


def page_of(document: Schema) -> str:
    """The page; every operation and every schema has an anchor."""
    info, groups = document["info"], [tag["name"] for tag in document["tags"]]
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
    return _SHELL.format(
        title=escape(info["title"]),
        version=escape(info["version"]),
        contents="".join(_entry(group) for group in [*groups, "Schemas"]),
        main=_text(info["description"]) + "".join(sections),
    )


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
    parts = [_security(operation["security"])]
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
        return "<p>Bearer token, where the setting <code>control_token</code> is set.</p>"
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
    text = schema.get("description", "")
    return f": {_inline(text)}" if text else ""


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
