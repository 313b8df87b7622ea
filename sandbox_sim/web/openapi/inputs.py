"""Queries and bodies, as OpenAPI parameters and schemas: pydantic makes them from the models."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core.core_schema import WithDefaultSchema

from sandbox_sim.web.control.input_models import LARGEST_INTEGER
from sandbox_sim.web.openapi.json_schema import REF, Schema
from sandbox_sim.web.routes import Body, Query

_TEMPLATE = REF + "{model}"
_NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": LARGEST_INTEGER}


class _Brief(GenerateJsonSchema):
    """Leaves out what pydantic adds by itself: names as titles, and defaults that say nothing."""

    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        if isinstance(schema.get("default"), str | int | float):
            return super().default_schema(schema)
        return self.generate_inner(schema["schema"])


class Models:
    """The pydantic models of the inputs; `components` has the schema of each."""

    def __init__(self, inputs: Iterable[Query | Body]) -> None:
        found = [each.model for each in inputs]
        models = dict.fromkeys(each for each in found if _is_model(each))
        self._schemas, defined = models_json_schema(
            [(model, "validation") for model in models],
            ref_template=_TEMPLATE,
            schema_generator=_Brief,
        )
        self.components: dict[str, Schema] = defined.get("$defs", {})
        self._unions: dict[int, Schema] = {}
        for adapter in (each for each in found if isinstance(each, TypeAdapter)):
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
        values = {name: {"enum": [*each]} for name, each in body.match_values.items()}
        match = {"propertyNames": {"pattern": f"^({names})(\\..*)?$"}, "properties": values}
        return {"allOf": [schema, {"properties": {"match": match}}]}

    def parameters(self, query: Query) -> Sequence[Schema]:
        """The parameters of a query."""
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
        """A tagged union; those inside of it become components, so that `mapping` can name them."""
        schema = adapter.json_schema(ref_template=_TEMPLATE, schema_generator=_Brief)
        self.components |= schema.pop("$defs")
        return self._named(schema, "MakePayment")

    def _named(self, union: Schema, name: str) -> Schema:
        named: list[tuple[Schema, str]] = []
        mapping: dict[str, str] = {}
        for tag, choice in union["discriminator"]["mapping"].items():
            if isinstance(choice, str):
                mapping[tag] = choice
                continue
            reference = next((ref for known, ref in named if known == choice), None)
            if reference is None:
                component = name + tag.capitalize()
                self.components[component] = self._named(choice, component)
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
    """The schema of a field without null, which a query cannot spell."""
    schema = dict(schema)
    match [each for each in schema.pop("anyOf", ()) if each != {"type": "null"}]:
        case []:
            return schema
        case [option]:
            return {**option, **schema}
        case options:
            return {**schema, "anyOf": options}


def _filter_schema(query: Query, name: str) -> Schema:
    """What a filter may be."""
    if name in query.numbers:
        return _NUMBER
    if name in query.switches:
        return {"type": "boolean"}
    if name in query.values:
        return {"type": "string", "enum": list(query.values[name])}
    return {"type": "string"}
