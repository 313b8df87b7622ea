"""Reads the settings from flags, environment and file.

A setting `some_name` is a key of the TOML file, `SANDBOX_SIM_SOME_NAME` in the environment and
`--set some_name=value` on the command line. A flag overrides the environment, the environment the
file, and the file the default. All problems are reported together, a line for each.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast, get_args

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from sandbox_sim.settings.networks import merged_variables
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.redaction import closest_match, suggestion

ENV_PREFIX: Final = "SANDBOX_SIM_"
NETWORK_PREFIX: Final = f"{ENV_PREFIX}NETWORKS__"
_ENVIRONMENT: Final = "environment"
_FLAG: Final = "flag"
# A change of a running server, which is JSON.
REQUEST: Final = "request"
# These origins give values as text: lists and tables in JSON.
_TEXT_ORIGINS: Final = frozenset({_ENVIRONMENT, _FLAG})
_TYPE_NAMES: Final = {"list_type": "a list", "dict_type": "a table"}
_PYDANTIC_SUBJECT: Final = re.compile(r"^\w+ should")


class ConfigError(ValueError):
    """Settings are invalid; each line names one, where it came from, and what it accepts."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings, and the origin of each one that is not a default."""

    settings: Settings
    origins: Mapping[str, str]


def load(file: Path | None = None, flags: Mapping[str, str] | None = None) -> LoadedSettings:
    """Read file, environment and flags; raises `ConfigError` with a line for each problem."""
    layers: dict[str, Mapping[str, Any]] = {}
    if file is not None:
        layers[str(file)] = read_toml(file)
    layers[_ENVIRONMENT] = _environment()
    layers[_FLAG] = flags or {}
    problems: list[str] = []
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, layer in layers.items():
        problems += _unknown_settings(layer, origin)
        known = {name: value for name, value in layer.items() if name in Settings.model_fields}
        if origin in _TEXT_ORIGINS:
            known, undecodable = _decode(known, origin)
            problems += undecodable
        values |= known
        origins |= dict.fromkeys(known, origin)
        if origin == _ENVIRONMENT and (variables := _network_variables()):
            values["networks"] = merged_variables(values.get("networks", {}), variables)
            origins.setdefault("networks", origin)
    settings = _validated(values, origins, problems)
    return LoadedSettings(settings, {**origins, **settings.turned_on})


def settings_from(values: Mapping[str, Any], place: str, *problems: str) -> Settings:
    """The settings with these values; file and environment are not read.

    place: where the values were given, for the lines of the error.
    problems: lines about problems that were found before.
    Raises `ConfigError`.
    """
    known = {name: value for name, value in values.items() if name in Settings.model_fields}
    return _validated(
        known, dict.fromkeys(known, place), [*problems, *_unknown_settings(values, place)]
    )


def _validated(
    values: Mapping[str, Any], origins: Mapping[str, str], problems: Sequence[str]
) -> Settings:
    """Make the settings. Raises `ConfigError` if they are invalid or `problems` is not empty."""
    if garbled := [name for name, value in values.items() if not _is_utf_8(value)]:
        lines = (f"{name} (from {origins[name]}): must be UTF-8" for name in garbled)
        raise ConfigError("\n".join([*problems, *lines]))
    try:
        settings = Settings(**values)
    except ValidationError as error:
        problems = [*problems, *_error_lines(error, origins)]
    if problems:
        raise ConfigError("\n".join(problems))
    return settings


def _is_utf_8(value: object) -> bool:
    """Whether a value has no surrogates, which stand for bytes that are not UTF-8."""
    try:
        json.dumps(value, skipkeys=True, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        return False
    return True


def read_toml(file: Path) -> Mapping[str, Any]:
    """The document in a file. Raises `ConfigError`."""
    import tomllib  # noqa: PLC0415 -- needed only with a file

    try:
        return tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # also for bytes that are not UTF-8, and integers that are too long
        raise ConfigError(f"{file}: is not TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{file}: is not TOML: it is too deep") from None


def _environment() -> Mapping[str, str]:
    names = {f"{ENV_PREFIX}{name}".lower(): name for name in Settings.model_fields}
    return {names[key.lower()]: text for key, text in os.environ.items() if key.lower() in names}


def _network_variables() -> Mapping[str, str]:
    """The variables with settings of networks, by their names without `NETWORK_PREFIX`."""
    return {
        key[len(NETWORK_PREFIX) :]: text
        for key, text in os.environ.items()
        if key.upper().startswith(NETWORK_PREFIX)
    }


def _decode(texts: Mapping[str, str], origin: str) -> tuple[dict[str, Any], Sequence[str]]:
    """The texts, with lists and tables parsed as JSON, and problems. `null` leaves a default."""
    values: dict[str, Any] = {}
    problems = []
    for name, text in texts.items():
        default = _default(name)
        try:
            values[name] = json.loads(text) if isinstance(default, list | dict) else text
        except (ValueError, RecursionError):
            kind = "a list" if isinstance(default, list) else "a table"
            problems.append(f"{name} (from {origin}): must be {kind}, {_example(name, origin)}")
    return {name: value for name, value in values.items() if value is not None}, problems


def _unknown_settings(names: Iterable[str], place: str) -> Iterator[str]:
    for name in names:
        if name not in Settings.model_fields:
            yield no_such_setting(name, place, Settings.model_fields)


def no_such_setting(name: str, place: str, known: Iterable[str], prefix: str = "") -> str:
    """The error about an unknown setting, with a similar name as a hint.

    prefix: the beginning of all these names as the user writes them.
    """
    closest = closest_match(name, known)
    hint = f"; did you mean {prefix}{closest}?" if closest else ""
    return f"{prefix}{name} (from {place}): there is no such setting{hint}"


def _error_lines(error: ValidationError, origins: Mapping[str, str]) -> Iterator[str]:
    """One line for each problem: the setting, its origin, and what is wrong."""
    for detail in error.errors(include_url=False, include_input=False):
        if detail["loc"]:
            name, *rest = (str(part) for part in detail["loc"] if part != "[key]")
            path = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in rest)
            origin = origins.get(name, "default")
            yield f"{name}{path} (from {origin}): {_problem(name, rest, detail, origin)}"
            continue
        for line in message_of(detail).splitlines():
            name, _, problem = line.partition(": ")
            origin = origins.get(name.partition(".")[0], "default")
            yield f"{name} (from {origin}): {problem}"


def _problem(name: str, rest: Sequence[str], detail: ErrorDetails, origin: str) -> str:
    match detail["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return f"is unknown; {suggestion(rest[-1], _fields_of_entry(name))}"
        case "list_type" | "dict_type" as kind if not rest:
            return f"must be {_TYPE_NAMES[kind]}, {_example(name, origin)}"
    return message_of(detail)


def message_of(detail: ErrorDetails) -> str:
    """What a value must be, as our own errors say it."""
    return _PYDANTIC_SUBJECT.sub("must", detail["msg"].removeprefix("Value error, "))


def _fields_of_entry(name: str) -> Iterable[str]:
    """The fields of the model that the entries of a setting have, such as `[[credentials]]`."""
    (model,) = get_args(Settings.model_fields[name].annotation)
    return cast("type[BaseModel]", model).model_fields


def _example(name: str, origin: str) -> str:
    """An example of a list or a table, as it is written at this origin."""
    (example,) = Settings.model_fields[name].examples or [_default(name)]
    text = json.dumps(example) if origin in {*_TEXT_ORIGINS, REQUEST} else as_toml(example)
    return f"such as {text}"


def as_toml(value: object) -> str:
    """A value in TOML; only tables differ from JSON."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{json.dumps(key)} = {as_toml(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    return json.dumps(value, default=_unmasked)


def _unmasked(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def _default(name: str) -> object:
    return Settings.model_fields[name].get_default()
