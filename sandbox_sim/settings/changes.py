"""The settings that can change while a server runs: checks and shows changes."""

from collections.abc import Mapping
from dataclasses import fields, replace
from enum import Enum
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin

from sandbox_sim.overrides.behaviour import ChangeRefused
from sandbox_sim.records.behaviour import Behaviour, SettingView, shown_value
from sandbox_sim.settings.loading import REQUEST, ConfigError, settings_from
from sandbox_sim.settings.schema import Settings

# These only set others: the server keeps their value, and reads the others.
_ENABLING_SETTINGS: Final = frozenset({"lenient", "rate_limit"})
_BEHAVIOUR_FIELDS: Final = frozenset(each.name for each in fields(Behaviour))
# In the order of the configuration file.
CHANGEABLE: Final = tuple(
    name for name in Settings.model_fields if name in _BEHAVIOUR_FIELDS | _ENABLING_SETTINGS
)


class RunningSettings:
    """The settings that a server was started with, and the behaviour after a change."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._configured = settings.behaviour()

    def changed(self, present: Behaviour, changes: Mapping[str, Any]) -> Behaviour:
        """The behaviour with these changes, checked as at a start. Raises `ChangeRefused`.

        A setting that was configured, or changed before, counts as set by itself (D34).
        """
        given = {**present.given, **changes}
        at_start = self._settings.model_fields_set
        configured = {
            name: getattr(self._settings, name) for name in CHANGEABLE if name in at_start
        }
        problems = [
            f"{name} (from {REQUEST}): cannot change while the server runs; configure it and "
            "restart the server"
            for name in changes
            if name in Settings.model_fields and name not in CHANGEABLE
        ]
        try:
            settings = settings_from({**configured, **given}, REQUEST, *problems)
        except ConfigError as error:
            raise ChangeRefused(str(error)) from None
        in_json = settings.model_dump(mode="json", include=set(given))
        return replace(settings.behaviour(), given=in_json)

    def shown(self, present: Behaviour) -> dict[str, SettingView]:
        """Each setting that can change, by its name."""
        return {name: self._view(name, present) for name in CHANGEABLE}

    def _view(self, name: str, present: Behaviour) -> SettingView:
        if name in _ENABLING_SETTINGS:
            configured = getattr(self._settings, name)
            value = present.given.get(name, configured)
        else:
            configured, value = getattr(self._configured, name), getattr(present, name)
        field = Settings.model_fields[name]
        return {
            "value": shown_value(name, value),
            "configured": shown_value(name, configured),
            "changed": value != configured,
            "choices": _choices(field.annotation),
            "description": field.description or "",
        }


def _choices(kind: Any) -> list[Any] | None:
    """The possible values of a type; None for numbers, texts, lists and tables."""
    if kind is bool:
        return [False, True]
    if kind is NoneType:
        return [None]
    if get_origin(kind) is Literal:
        return [*get_args(kind)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [each.value for each in kind]
    members = [_choices(each) for each in get_args(kind)] if get_origin(kind) is not dict else []
    if not members or None in members:
        return None
    return [choice for each in members if each for choice in each]
