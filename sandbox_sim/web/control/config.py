"""The settings that can change while the server runs: `/_sandbox/config`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypedDict

from aiohttp import web
from pydantic import ConfigDict

from sandbox_sim.overrides.behaviour import BehaviourControl
from sandbox_sim.records.behaviour import Behaviour, SettingView
from sandbox_sim.web.control.input import Input, Nothing
from sandbox_sim.web.routes import CONTROL_PREFIX, RouteGroup, route

CONFIG_PATH = f"{CONTROL_PREFIX}/config"


class ChangeableSettings(Protocol):
    """The settings that the server was started with, and the behaviour after a change."""

    def changed(self, present: Behaviour, changes: Mapping[str, Any]) -> Behaviour:
        """The behaviour with these changes; raises `ChangeRefused`."""

    def shown(self, present: Behaviour) -> Mapping[str, SettingView]:
        """Each setting that can change, by its name."""


class ConfigChanges(Input):
    """Settings by their names. They are checked as at a start: all change, or none."""

    model_config = ConfigDict(extra="allow")


class ConfigView(TypedDict):
    """The settings that can change while the server runs, by their names."""

    settings: Annotated[dict[str, SettingView], "by their names"]


@dataclass(frozen=True, eq=False)
class ConfigRoutes(RouteGroup):
    """Shows and changes settings of the running server, and of all that share its store."""

    control: BehaviourControl
    settings: ChangeableSettings

    group = "Config"

    @route(f"GET {CONFIG_PATH}", "show the settings that can change while the server runs")
    async def show(self, _request: web.Request, _query: Nothing) -> ConfigView:
        """Show the present values and the configured ones."""
        return self._view()

    @route(f"PATCH {CONFIG_PATH}", "change settings; if one is wrong, none is changed")
    async def change(self, _request: web.Request, body: ConfigChanges) -> ConfigView:
        """Change these settings; all servers have followed when it answers."""
        changes = body.model_extra or {}
        await self.control.change(lambda present: self.settings.changed(present, changes))
        return self._view()

    @route(f"DELETE {CONFIG_PATH}", "restore the settings that the server was started with")
    async def undo(self, _request: web.Request, _query: Nothing) -> ConfigView:
        """Undo every change."""
        await self.control.undo()
        return self._view()

    def _view(self) -> ConfigView:
        return {"settings": dict(self.settings.shown(self.control.present))}
