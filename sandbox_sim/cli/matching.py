"""The options that select records, and how their values are read.

Values are compared as the control API shows them. In `field=value`, digits are a number if the
field holds numbers, and text otherwise: `transaction_id=1001` is text. `null`, `true`, `false` and
JSON in quotes, brackets or braces are read as JSON. `--match-json` takes everything else.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import click

C = TypeVar("C", bound=Callable[..., Any])
Pairs = Sequence[tuple[str, str]]

# Fields that hold numbers, by the last part of their name. `amount` holds a number in a request
# only; elsewhere it is a decimal in a string.
_NUMBERS: Final = frozenset(
    {
        *("service_id", "http_status", "duration_ms", "char_count", "page_count", "page", "limit"),
        *("units_charged", "units_per_recipient", "total_units_charged", "total_recipients"),
        *(
            "entity_service_id",
            "total_no_of_records",
            "total_pages",
            "current_page",
            "items_per_page",
        ),
        *("sms_balance", "collection_balance", "payout_balance", "airtime_balance"),
    }
)
_NUMBERS_IN_FULL: Final = frozenset({"request.amount"})


class Filter(NamedTuple):
    """A field that has an option of its own.

    switch: the option takes no value and means true.
    """

    field: str
    says: str
    options: tuple[str, ...]
    switch: bool = False


def value_of(text: str, *, number: bool) -> object:
    """Return the value that a text means; number: whether digits are a number."""
    try:
        value: object = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return text
    return text if type(value) in {int, float} and not number else value


def _refused(constant: str) -> object:
    """Refuse NaN and Infinity: they are not JSON, although Python reads them."""
    raise ValueError(constant)


def holds_numbers(name: str) -> bool:
    """Return whether this field holds numbers; the name may have dots."""
    return name in _NUMBERS_IN_FULL or name.rpartition(".")[2] in _NUMBERS


def pairs(_context: click.Context, _param: click.Parameter, texts: Sequence[str]) -> Pairs:
    """Split each `name=value` at its first `=`. Raises `BadParameter`."""
    split = [text.partition("=") for text in texts]
    for text, (name, equals, _) in zip(texts, split, strict=True):
        if not (name and equals):
            raise click.BadParameter(f"{text} is not of the form field=value")
    return [(name, value) for name, _, value in split]


def _object(
    _context: click.Context, _param: click.Parameter, text: str | None
) -> Mapping[str, object]:
    try:
        document = {} if text is None else json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise click.BadParameter("must be a JSON object of fields and the values they have")
    return document


def filtered(filters: Sequence[Filter]) -> Callable[[C], C]:
    """Add an option for each filter; its parameter has the name of the field."""

    def decorate(command: C) -> C:
        for each in reversed(filters):
            kind: dict[str, Any] = {"metavar": "VALUE"}
            if each.switch:
                kind = {"is_flag": True, "flag_value": "true", "default": None}
            option = click.option(*each.options, each.field, help=f"Only {each.says}.", **kind)
            command = option(command)
        return command

    return decorate


def given(filters: Mapping[str, str | None]) -> Pairs:
    """Return the filters that were given, as pairs of field and value."""
    return [(name, text) for name, text in filters.items() if text is not None]


where_option = click.option(
    "--where",
    multiple=True,
    metavar="FIELD=VALUE",
    callback=pairs,
    help="Only records whose field has this value; may be repeated.",
)


def matching(command: C) -> C:
    """Add the options `--match` and `--match-json`, as parameters `match` and `exactly`."""
    exactly = click.option(
        "--match-json",
        "exactly",
        metavar="OBJECT",
        callback=_object,
        help="The same as a JSON object, where the type of a value matters.",
    )
    match = click.option(
        "--match",
        multiple=True,
        metavar="FIELD=VALUE",
        callback=pairs,
        help="Only records whose field, such as request.amount, has this value; may be repeated.",
    )
    return match(exactly(command))


def matched(
    filters: Mapping[str, str | None], match: Pairs, exactly: Mapping[str, object]
) -> dict[str, object]:
    """Return the `match` of a search; for a field in both, `exactly` wins."""
    named = [*given(filters), *match]
    return {
        **{name: value_of(text, number=holds_numbers(name)) for name, text in named},
        **exactly,
    }
