"""Templates of requests: text in which `{name}` stands for a value, without expressions.

`{{` and `}}` are literal braces. A text that is only one placeholder keeps the type of its value in
JSON: `"{amount_minor}"` becomes a number. Every other text stays a text.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import isfinite
from operator import attrgetter
from string import Formatter
from typing import Any, Final
from urllib.parse import quote, urlencode

from sandbox_sim.ports.network import StatusQuery, SubmitRequest
from sandbox_sim.values import money
from sandbox_sim.values.json_text import compact
from sandbox_sim.values.msisdn import to_international, to_local

# A text, a whole number, or an exact decimal number.
Value = str | int | Decimal

# The five groups of a UUID, with hyphens and without.
_UUID: Final = re.compile("-".join(["([0-9a-f]{8})", *["([0-9a-f]{4})"] * 3, "([0-9a-f]{12})"]))

_HEX_UUID: Final = re.compile(_UUID.pattern.replace("-(", "("))


class NoValue(ValueError):
    """A placeholder has no value for this request; the text says why."""


def hex_of(reference: str) -> str:
    """A UUID without its hyphens; another text unchanged."""
    found = _UUID.fullmatch(reference)
    return "".join(found.groups()) if found else reference


def from_hex(reference: str) -> str:
    """The UUID, in lower case with its hyphens; another text unchanged.

    Networks repeat it without hyphens, where it was sent so, or in upper case.
    """
    text = reference.lower()
    found = _UUID.fullmatch(text) or _HEX_UUID.fullmatch(text)
    return "-".join(found.groups()) if found else reference


def in_minor_units(amount: Decimal, currency: str) -> int:
    """An amount in the smallest unit of its currency, such as pesewas.

    Raises:
        NoValue: the amount has more decimals than the currency.
    """
    sign, digits, exponent = amount.as_tuple()
    if not isinstance(exponent, int):
        raise NoValue("the amount is not a number")
    minor = Decimal((sign, digits, exponent + money.decimals_of(currency)))
    if minor != minor.to_integral_value():
        raise NoValue(f"the amount has more decimals than {currency}")
    return int(minor)


def from_minor_units(minor: Decimal, currency: str) -> Decimal:
    """The amount that `in_minor_units` counts in the smallest unit; exact."""
    sign, digits, exponent = minor.as_tuple()
    return Decimal((sign, digits, int(exponent) - money.decimals_of(currency)))


def _with_all_decimals(request: SubmitRequest) -> str:
    """The amount as a text that has each decimal of its currency: 10.50 and not 10.5."""
    minor = in_minor_units(request.amount, request.currency)
    return format(from_minor_units(Decimal(minor), request.currency), "f")


def _fields(*names: str) -> Mapping[str, Callable[[Any], Value]]:
    """Placeholders with the names of the fields that they stand for."""
    return {name: attrgetter(name) for name in names}


# The placeholders of both requests and status queries.
_SHARED: Final[Mapping[str, Callable[[Any], Value]]] = {
    **_fields("reference", "transaction_id", "attempt_id", "service_id"),
    "reference_hex": lambda each: hex_of(each.reference),
    "operation": lambda each: each.operation.value,
}

SUBMIT: Final[Mapping[str, Callable[[SubmitRequest], Value]]] = {
    **_SHARED,
    **_fields("amount", "currency", "nw", "nickname", "description", "request_time"),
    **_fields("text", "sender_id"),
    "amount_text": _with_all_decimals,
    "amount_minor": lambda request: in_minor_units(request.amount, request.currency),
    "customer_number": lambda request: request.party,
    "customer_number_local": lambda request: to_local(request.party) or request.party,
    "customer_number_international": lambda request: to_international(request.party),
    "callback_url": lambda request: request.notification_url,
}

STATUS: Final[Mapping[str, Callable[[StatusQuery], Value]]] = {
    **_SHARED,
    "network_id": lambda query: query.network_id,
}

# The placeholders whose value a client chooses, and the fields of `SubmitRequest` that have it.
CLIENT_FIELDS: Final[Mapping[str, str]] = {
    **{
        name: name
        for name in ("transaction_id", "nw", "nickname", "request_time", "text", "sender_id")
    },
    **dict.fromkeys(
        ("customer_number", "customer_number_local", "customer_number_international"), "party"
    ),
    "description": "description",
}

# Placeholders with values from the settings: the network's word for `nw`, and our account.
CHANNEL: Final = "channel"

ACCOUNT: Final = ("auth_user", "auth_secret")

IN_SUBMIT: Final = frozenset({*SUBMIT, CHANNEL, *ACCOUNT})

IN_STATUS: Final = frozenset({*STATUS, *ACCOUNT})

# The placeholders that identify an attempt. Two services may use the same `transaction_id`.
_PAIR: Final = frozenset({"transaction_id", "service_id"})

_IDENTIFIERS: Final = (
    *(frozenset({name}) for name in ("reference", "reference_hex", "attempt_id")),
    _PAIR,
)

IDENTIFIERS: Final = (
    "{reference}, {reference_hex}, {attempt_id}, or {transaction_id} together with {service_id}"
)

AMOUNTS: Final = frozenset({"amount", "amount_text", "amount_minor"})


def identifies_attempt(used: Iterable[str]) -> bool:
    """Whether these placeholders identify one attempt."""
    names = frozenset(used)
    return any(each <= names for each in _IDENTIFIERS)


NEEDS_SEPARATOR: Final = (
    "{service_id} and {transaction_id} need a separator that is not a digit, because 5 with 51 "
    "reads as 55 with 1, the payment of another service; write {service_id}-{transaction_id}"
)


def problem_of(used: Iterable[str], valid: frozenset[str]) -> str | None:
    """A sentence about the placeholders that do not exist; None if all exist."""
    unknown = sorted(set(used) - valid)
    if not unknown:
        return None
    shown = ", ".join(f"{{{name}}}" for name in unknown)
    listed = ", ".join(f"{{{name}}}" for name in sorted(valid))
    return f"there is no placeholder {shown} here; there are {listed}"


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
            raise ValueError("a brace is unmatched; write {{ or }} for a literal brace") from None
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

    @property
    def identifiers(self) -> Iterator[str]:
        """The placeholders, without two identifiers of which it is unclear where one ends."""
        unclear = _PAIR if self._runs_together() else frozenset()
        return (name for name in self.names if name not in unclear)

    def _runs_together(self) -> bool:
        """Whether there are only digits, or other values, between the two of `_PAIR`."""
        places = [place for place, (_, name) in enumerate(self.parts) if name in _PAIR]
        return any(
            self.parts[first][1] != self.parts[second][1]
            and all(not literal or literal.isdigit() for literal in self._between(first, second))
            for first, second in pairwise(places)
        )

    def _between(self, first: int, second: int) -> Iterator[str]:
        """The literal texts between two placeholders."""
        return (literal for literal, _ in self.parts[first + 1 : second + 1])

    def value(self, values: Values) -> Value:
        """The value of a text that is only one placeholder, with its type; else the text."""
        if len(self.parts) == 1 and self.parts[0][0] == "" and self.parts[0][1]:
            return values[self.parts[0][1]]
        return self.render(values)

    def render(self, values: Values, escape: Callable[[str], str] = str) -> str:
        """The text with its placeholders filled in. escape: escapes each value."""
        return "".join(
            literal + (escape(as_text(values[name])) if name else "")
            for literal, name in self.parts
        )


# A JSON value whose texts are parsed as templates.
_Json = Text | bool | int | float | None | tuple["_Json", ...] | Mapping[str, "_Json"]


class JsonObject:
    """A template of a JSON object, with placeholders in its values, but not in names of members."""

    def __init__(self, source: Mapping[str, object]) -> None:
        """Read a template.

        Raises:
            ValueError: it has a value that JSON does not support, or an invalid template.
        """
        self._template = _parse(source)

    @property
    def texts(self) -> Iterator[Text]:
        """The texts with the placeholders."""
        return _texts_in(self._template)

    @property
    def names(self) -> Iterator[str]:
        """The placeholders."""
        return (name for text in self.texts for name in text.names)

    def render(self, values: Values) -> str:
        """The object as JSON; a `Decimal` is written as an exact number."""
        return _render_json(self._template, values)


def _parse(source: object) -> _Json:
    match source:
        case str():
            return Text.parse(source)
        case float() if not isfinite(source):
            raise ValueError(f"JSON has no number {source}")
        case None | bool() | int() | float():
            return source
        case list():
            return tuple(map(_parse, source))
        case Mapping():
            return {str(name): _parse(each) for name, each in source.items()}
        case _:
            kind = type(source).__name__
            raise ValueError(f"JSON has no values of type {kind}; write it as text")


def _texts_in(template: _Json) -> Iterator[Text]:
    match template:
        case Text():
            yield template
        case tuple():
            for each in template:
                yield from _texts_in(each)
        case Mapping():
            for each in template.values():
                yield from _texts_in(each)


def _render_json(template: _Json, values: Values) -> str:
    match template:
        case Text():
            value = template.value(values)
            return format(value, "f") if isinstance(value, Decimal) else compact(value)
        case tuple():
            return f"[{','.join(_render_json(each, values) for each in template)}]"
        case Mapping():
            members = [
                f"{compact(name)}:{_render_json(each, values)}" for name, each in template.items()
            ]
            return f"{{{','.join(members)}}}"
        case _:
            return compact(template)


def render_form(template: Mapping[str, Text], values: Values) -> str:
    """The template as the fields of a form."""
    return urlencode({name: each.render(values) for name, each in template.items()})


def render_path(template: Text, values: Values) -> str:
    """The template as the path and query of a URL; each value is percent-escaped."""
    return template.render(values, lambda text: quote(text, safe=""))


def names_in_path(template: Text) -> Iterator[str]:
    """The placeholders before the query of a path."""
    for literal, name in template.parts:
        if "?" in literal:
            return
        if name:
            yield name


def as_text(value: Value) -> str:
    """A value as text."""
    return format(value, "f") if isinstance(value, Decimal) else str(value)
