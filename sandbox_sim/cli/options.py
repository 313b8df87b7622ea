"""The options that several commands share, and how their values are read.

In `field=value`, digits are a number if the field has numbers in the control API, and text
otherwise: `transaction_id=1001` is text. `null`, `true`, `false` and values in quotes, brackets or
braces are JSON. For all other cases there is `--match-json`.
"""

import functools
import getpass
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from sandbox_sim.values.clients import SANDBOX_CLIENT
from sandbox_sim.values.timestamps import VALID_WAIT, is_valid_wait, parse_duration

C = TypeVar("C", bound=Callable[..., Any])
Command = Callable[..., Any]
Pairs = Sequence[tuple[str, str]]
Query = Sequence[tuple[str, object]]


class Integer(click.IntRange):
    """An integer in a range; click's own name for it, in its messages, is "integer range"."""

    name = "integer"


# The control API has the same bounds.
LIST_LIMIT: Final = 100
FIND_LIMIT: Final = Integer(1, 1000)
# Longer addresses are cut in the error message.
_MAX_SHOWN_CHARACTERS: Final = 80
# Fields that hold numbers, by the last part of their name. `amount` is a number in requests only;
# elsewhere it is a decimal in a string.
_NUMBER_FIELDS: Final = frozenset(
    {
        *("service_id", "http_status", "duration_ms", "char_count", "page_count", "page", "limit"),
        *("units_charged", "units_per_recipient", "total_units_charged", "total_recipients"),
        *("entity_service_id", "total_no_of_records", "total_pages", "current_page"),
        *("items_per_page", "sms_balance", "collection_balance", "payout_balance"),
        "airtime_balance",
    }
)
_NUMBER_FIELDS_IN_FULL: Final = frozenset({"request.amount"})


def check_ids(
    _context: click.Context, param: click.Parameter, ids: tuple[str, ...]
) -> tuple[str, ...]:
    """Check that there is one id, or a service_id and an id. Raises `BadParameter`."""
    if len(ids) > 2:
        raise click.BadParameter(f"give {param.metavar} only")
    return ids


def check_address(_context: click.Context, _param: click.Parameter, url: str | None) -> str | None:
    """Return a callback address unchanged. Raises `BadParameter` if it is invalid. Source: D37."""
    if url is None:
        return None
    from sandbox_sim.http_addresses import BadAddress, check  # noqa: PLC0415
    from sandbox_sim.values.redaction import redact_text  # noqa: PLC0415 -- serve starts fast

    try:
        check(url)
    except BadAddress as error:
        shown = redact_text(url)
        if len(shown) > _MAX_SHOWN_CHARACTERS:
            shown = shown[:_MAX_SHOWN_CHARACTERS] + "…"
        text = f"{shown} is not a valid address: it {error}"
        raise click.BadParameter(text) from None
    return url


def parse_pairs(_context: click.Context, param: click.Parameter, texts: Sequence[str]) -> Pairs:
    """Split each `name=value` at its first `=`. Raises `BadParameter`."""
    split = [text.partition("=") for text in texts]
    for text, (name, equals, _) in zip(texts, split, strict=True):
        if not (name and equals):
            form = (param.metavar or "").lower().removesuffix("...")
            raise click.BadParameter(f"{text} does not have the form {form}")
    return [(name, value) for name, _, value in split]


def fields_option(*names: str, help_text: str) -> Callable[[Command], Command]:
    """An option `FIELD=VALUE`, which may be repeated."""
    text = f"{help_text}; may be repeated."
    return click.option(
        *names, multiple=True, metavar="FIELD=VALUE", callback=parse_pairs, help=text
    )


class Seconds(click.ParamType[float]):
    """A time in seconds. parse: returns None for a text that is not `wanted`."""

    def __init__(self, name: str, parse: Callable[[str], float | None], wanted: str) -> None:
        self.name = name
        self._parse = parse
        self._wanted = wanted

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds, or fail."""
        seconds = self._parse(str(value))
        if seconds is None:
            self.fail(f"{value!r} is not {self._wanted}", param, ctx)
        return seconds


DURATION: Final = Seconds("duration", parse_duration, "a duration, such as 90, 0.8s, 5m or 1h30m")


def number_of_seconds(allows: Callable[[float], bool], wanted: str) -> Seconds:
    """The type of a number that `allows` accepts."""

    def parse(text: str) -> float | None:
        try:
            return float(text) if allows(float(text)) else None
        except ValueError:
            return None

    return Seconds("seconds", parse, wanted)


def _user_name() -> str | None:
    """The name of the user; None if this machine has none, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # before Python 3.13 and since then
        return None


def by_option(help_text: str) -> Callable[[Command], Command]:
    """The option for the name of the person who decides."""
    return click.option("--by", default=_user_name, show_default="your user name", help=help_text)


def timeout_option(help_text: str, default: float = 10) -> Callable[[Command], Command]:
    """The option for the longest time to wait, in seconds."""
    kind = number_of_seconds(is_valid_wait, VALID_WAIT)
    return click.option("--timeout", type=kind, default=default, help=help_text)


def _check_file(_context: click.Context, _param: click.Parameter, file: Path | None) -> Path | None:
    """Refuse an empty text, which a `Path` takes for the working directory."""
    if file == Path():
        raise click.BadParameter("must be a file")
    return file


config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    callback=_check_file,
    envvar="SANDBOX_SIM_CONFIG",
    help="TOML file with settings.",
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=lambda *given: dict(parse_pairs(*given)),
    help="Set a setting; `config show` lists them. May be repeated.",
)


def credential_options(command: C) -> C:
    """Add the options for credentials; their defaults are those of a gateway without settings."""
    for name, default in (
        ("secret_key", SANDBOX_CLIENT.secret_key),
        ("client_key", SANDBOX_CLIENT.client_key),
    ):
        command = click.option(
            f"--{name.replace('_', '-')}",
            default=default,
            envvar=f"SANDBOX_SIM_{name.upper()}",
            show_envvar=True,
            help=f"The {name.replace('_', ' ')} that requests are sent with.",
        )(command)
    return command


class Day(click.DateTime):
    """A day such as 2026-01-31, or a time of one of the other formats.

    example: of a time. A day has no offset from UTC.
    """

    def __init__(self, times: Sequence[str] = (), example: str = "") -> None:
        super().__init__(["%Y-%m-%d", *times])
        self._wanted = "a day such as 2026-01-31"
        if example:
            self._wanted += f" or a time such as {example}"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return the beginning of the day or the time, or fail."""
        try:
            found: datetime = super().convert(value, param, ctx)
        except click.BadParameter:  # it lists the formats with their codes
            self.fail(f"{value!r} is not {self._wanted}", param, ctx)
        return found


class Filter(NamedTuple):
    """A field with its own option, which by default has the name of the field.

    selects: the records that it selects, for the help. switch: the option is a flag for the value
    true. type: the type of its values; None for text.
    """

    field: str
    selects: str
    options: Sequence[str] = ()
    switch: bool = False
    type: click.ParamType[Any] | None = None


def parse_value(text: str, *, number: bool) -> object:
    """Return the value of a text: JSON if it is JSON, else the text.

    number: whether digits are a number.
    """
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text
    return text if type(value) in {int, float} and not number else value


def _refuse_constant(constant: str) -> object:
    """Refuse NaN and Infinity: they are not JSON, although Python reads them."""
    raise ValueError(constant)


def is_number_field(name: str) -> bool:
    """Whether this field holds numbers; the name may have dots."""
    return name in _NUMBER_FIELDS_IN_FULL or name.rpartition(".")[2] in _NUMBER_FIELDS


def _json_object(
    _context: click.Context, _param: click.Parameter, text: str | None
) -> Mapping[str, object]:
    try:
        document = {} if text is None else json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"is not valid JSON: {error}") from None
    except RecursionError:
        raise click.BadParameter("is not valid JSON: it is too deep") from None
    if not isinstance(document, dict):
        raise click.BadParameter("must be a JSON object with the fields and their values")
    return document


def with_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """Add these options; the help lists them in this order."""
    return functools.reduce(lambda decorated, option: option(decorated), reversed(options), command)


def _filter_option(each: Filter) -> Callable[[Command], Command]:
    kind: dict[str, Any] = {"metavar": "VALUE" if each.type is None else None, "type": each.type}
    if each.switch:
        kind = {"is_flag": True, "flag_value": "true", "default": None}
    options = each.options or [f"--{each.field.replace('_', '-')}"]
    return click.option(*options, each.field, help=f"Only {each.selects}.", **kind)


def parse_match(texts: Pairs) -> dict[str, object]:
    """The `match` of a search for these fields."""
    return {name: parse_value(text, number=is_number_field(name)) for name, text in texts}


def list_options(
    filters: Sequence[Filter] = (), *, where: bool = True, pages: bool = True
) -> Callable[[Command], Command]:
    """Add an option for each filter, `--where`, `--limit` and `--after`.

    The command gets the given ones as `query`.
    """
    further: Sequence[Callable[[Command], Command]] = [
        fields_option("--where", help_text="Only records whose field has this value"),
        click.option(
            "--limit",
            type=Integer(1, LIST_LIMIT),
            default=20,
            help="How many records at most.",
        ),
        click.option(
            "--after",
            metavar="ID",
            help="Start after the record with this id, the last one of the previous page.",
        ),
    ]
    added = [*map(_filter_option, filters), *further[not where : 3 if pages else 1]]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(*args: Any, where: Pairs = (), **given: Any) -> Any:
            names = [*(each.field for each in filters), *(("limit", "after") if pages else ())]
            values = [(name, given.pop(name)) for name in names]
            query = [(name, value) for name, value in values if value is not None]
            return command(*args, query=[*query, *where], **given)

        return with_options(run, added)

    return decorate


def match_options(filters: Sequence[Filter] = ()) -> Callable[[Command], Command]:
    """Add an option for each filter, `--match` and `--match-json`.

    The command gets them as `match`. `--match-json` overrides the others.
    """
    match_json = click.option(
        "--match-json",
        "match_json",
        metavar="OBJECT",
        callback=_json_object,
        help="The same as --match, as a JSON object, if the type of a value matters.",
    )
    help_text = "Only records whose field has this value, such as request.amount=10"
    match = fields_option("--match", help_text=help_text)

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(*args: Any, match: Pairs, match_json: Mapping[str, object], **given: Any) -> Any:
            values = [(each.field, given.pop(each.field)) for each in filters]
            texts = [(name, text) for name, text in values if text is not None]
            return command(*args, match={**parse_match([*texts, *match]), **match_json}, **given)

        return with_options(run, [*map(_filter_option, filters), match, match_json])

    return decorate


def wait_options(command: Command) -> Command:
    """Add the options `--count` and `--timeout`."""
    timeout = timeout_option("The longest time to wait; exit 1 after it.", default=5)
    count = click.option(
        "--count",
        type=FIND_LIMIT,
        default=1,
        help="How many records to wait for.",
    )
    return count(timeout(command))
