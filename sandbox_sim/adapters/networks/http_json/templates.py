"""Templates of requests: text in which `{name}` stands for a value, without expressions.

`{{` and `}}` are braces of their own. A text that is one placeholder and nothing else keeps the
type of its value in JSON: `"{amount_minor}"` becomes a number. Every other text stays a text.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from string import Formatter
from typing import Final
from urllib.parse import quote, urlencode

from sandbox_sim.adapters.networks.http_json.placeholders import Value
from sandbox_sim.domain.json_text import compact

Values = Mapping[str, Value]
_FORMATTER: Final = Formatter()


@dataclass(frozen=True, slots=True)
class Text:
    """A text with placeholders: pairs of literal text and the name that follows, or none."""

    parts: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, source: str) -> "Text":
        """Read a template.

        Raises:
            ValueError: a brace is alone, or a placeholder is more than a name.
        """
        try:
            found = list(_FORMATTER.parse(source))
        except ValueError:
            raise ValueError("a brace is alone; write {{ or }} for a brace of its own") from None
        parts = []
        for literal, name, format_spec, conversion in found:
            if format_spec or conversion or (name is not None and not name.isidentifier()):
                raise ValueError("a placeholder is a name in braces, such as {reference}")
            parts.append((literal, name or ""))
        return cls(tuple(parts))

    @property
    def names(self) -> Iterator[str]:
        """The placeholders."""
        return (name for _, name in self.parts if name)

    def value(self, values: Values) -> Value:
        """The value of the only placeholder with its type, or the text."""
        if len(self.parts) == 1 and self.parts[0][0] == "" and self.parts[0][1]:
            return values[self.parts[0][1]]
        return self.text(values)

    def text(self, values: Values, written: Callable[[str], str] = str) -> str:
        """The text with its placeholders filled in. written: how each value is escaped."""
        return "".join(
            literal + (written(as_text(values[name])) if name else "")
            for literal, name in self.parts
        )


# A JSON value whose texts are parsed; everything else stays as it is.
_Json = Text | bool | int | float | None | tuple["_Json", ...] | Mapping[str, "_Json"]


class JsonObject:
    """A template of a JSON object. Placeholders may stand in every text below it, not in names."""

    def __init__(self, source: Mapping[str, object]) -> None:
        """Read a template.

        Raises:
            ValueError: it has a value that JSON does not have, or a text that cannot be read.
        """
        self._template = _parsed(source)

    @property
    def names(self) -> Iterator[str]:
        """The placeholders."""
        return _names_in(self._template)

    def text(self, values: Values) -> str:
        """The object as JSON; a `Decimal` is written as an exact number."""
        return _as_json(self._template, values)


def _parsed(source: object) -> _Json:
    match source:
        case str():
            return Text.parse(source)
        case float() if not isfinite(source):
            raise ValueError(f"JSON has no number {source}")
        case None | bool() | int() | float():
            return source
        case list():
            return tuple(map(_parsed, source))
        case Mapping():
            return {str(name): _parsed(each) for name, each in source.items()}
        case _:
            kind = type(source).__name__
            raise ValueError(f"a value of the type {kind} cannot stand in JSON; write it as text")


def _names_in(template: _Json) -> Iterator[str]:
    match template:
        case Text():
            yield from template.names
        case tuple():
            for each in template:
                yield from _names_in(each)
        case Mapping():
            for each in template.values():
                yield from _names_in(each)


def _as_json(template: _Json, values: Values) -> str:
    match template:
        case Text():
            value = template.value(values)
            return format(value, "f") if isinstance(value, Decimal) else compact(value)
        case tuple():
            return f"[{','.join(_as_json(each, values) for each in template)}]"
        case Mapping():
            members = [
                f"{compact(name)}:{_as_json(each, values)}" for name, each in template.items()
            ]
            return f"{{{','.join(members)}}}"
        case _:
            return compact(template)


def as_form(template: Mapping[str, Text], values: Values) -> str:
    """The template as the fields of a form."""
    return urlencode({name: each.text(values) for name, each in template.items()})


def as_path(template: Text, values: Values) -> str:
    """The template as the path and query of a URL; each value is percent-escaped."""
    return template.text(values, lambda text: quote(text, safe=""))


def as_text(value: Value) -> str:
    """A value inside of a text."""
    return format(value, "f") if isinstance(value, Decimal) else str(value)
