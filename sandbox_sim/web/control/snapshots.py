"""Named snapshots of the state under `/_sandbox/snapshots`. Source: docs/control-api.md."""

from operator import attrgetter

from aiohttp import web
from pydantic import Field

from sandbox_sim.domain.control import snapshots
from sandbox_sim.domain.control.snapshots import NAME_PATTERN, is_valid_name
from sandbox_sim.gateway.control.snapshots import Snapshots
from sandbox_sim.web.control.control_input import (
    LARGEST_INTEGER,
    SERVICE_ID,
    Guard,
    Input,
    Nothing,
    Routes,
    ServiceListQuery,
    body_of,
    error,
    query_of,
)

_NAMES = "1 to 64 characters, of letters, digits and . _ -, the first a letter or a digit"


class SnapshotBody(Input):
    """What `POST snapshots` takes: a name, and one service, or nothing for all."""

    name: str = Field(pattern=f"^{NAME_PATTERN}$", description=_NAMES)
    service_id: int | None = Field(None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)


class SnapshotRoutes:
    """Snapshots, for whoever holds the control token."""

    def __init__(self, snapshots: Snapshots, guard: Guard) -> None:
        self._snapshots = snapshots
        self._guard = guard

    def routes(self) -> Routes:
        """The route table."""
        return [
            ("GET", "/_sandbox/snapshots", self._guard(self.list)),
            ("POST", "/_sandbox/snapshots", self._guard(self.save)),
            ("POST", "/_sandbox/snapshots/{name}/restore", self._guard(self.restore)),
            ("DELETE", "/_sandbox/snapshots/{name}", self._guard(self.delete)),
        ]

    async def save(self, request: web.Request) -> web.Response:
        """Keep all that was done, for one service or for all; a name that exists is given anew."""
        asked = await body_of(request, SnapshotBody)
        saved = await self._snapshots.save(asked.name, asked.service_id)
        return web.json_response(snapshots.shown(saved), status=201)

    async def restore(self, request: web.Request) -> web.Response:
        """Have it all as it was, and as far from its end: times move on by what has gone by."""
        name = request.match_info["name"]
        await body_of(request, Nothing, optional=True)
        restored = await self._snapshots.restore(name) if is_valid_name(name) else None
        return _no_such(name) if restored is None else web.json_response(snapshots.shown(restored))

    async def delete(self, request: web.Request) -> web.Response:
        """Keep it no longer."""
        name = request.match_info["name"]
        deleted = is_valid_name(name) and await self._snapshots.delete(name)
        return web.json_response({"deleted": 1}) if deleted else _no_such(name)

    async def list(self, request: web.Request) -> web.Response:
        """Newest first; `next` is what to send as `after` for those that follow."""
        asked = query_of(request, ServiceListQuery)
        found = await self._snapshots.list(asked.listing)
        return asked.answer("snapshots", found, snapshots.shown, attrgetter("name"))


def _no_such(name: str) -> web.Response:
    return error(404, "not_found", f"snapshots has no {name!r}")
