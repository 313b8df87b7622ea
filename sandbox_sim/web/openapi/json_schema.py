"""JSON Schema of `TypedDict`s, which pydantic reads only on Python 3.12 and newer."""

import inspect
from collections.abc import Sequence
from enum import Enum
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

Schema = dict[str, Any]

REF: Final = "#/components/schemas/"
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

    def of(self, annotation: Any) -> Schema:
        """The schema of an annotation. In `Annotated`, a text is the description of the value.

        An enumeration or a tuple in `Annotated` lists the values that a string can have.

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
            return {"type": "array", "items": self.of(arguments[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
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
        properties = {name: self.of(_value_type(hint)) for name, hint in hints.items()}
        return {
            "type": "object",
            "description": inspect.getdoc(model),
            "properties": properties,
            "required": required,
        }

    def _annotated(self, annotation: Any, extras: Sequence[object]) -> Schema:
        schema = self.of(annotation)
        for extra in extras:
            match extra:
                case str():
                    schema["description"] = extra
                case tuple():
                    schema["enum"] = [*extra, *([None] if _may_be_null(annotation) else [])]
                case type() if issubclass(extra, Enum):
                    values = tuple(each.value for each in extra)
                    schema |= self._annotated(annotation, [values])
        return schema

    def _union(self, members: Sequence[Any]) -> Schema:
        schemas = [self.of(member) for member in members]
        if all(schema.keys() == {"type"} for schema in schemas):
            return {"type": [schema["type"] for schema in schemas]}
        return {"anyOf": schemas}


def _value_type(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is NotRequired else hint


def _may_be_null(annotation: Any) -> bool:
    return NoneType in get_args(annotation)
