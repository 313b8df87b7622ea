"""Named snapshots of the state under `/_sandbox/snapshots`. Source: docs/control-api.md."""

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import TypedDict

from aiohttp import web
from pydantic import Field

from sandbox_sim.domain.control.snapshots import NAME_PATTERN, SnapshotView, is_valid_name, shown
from sandbox_sim.gateway.control.snapshots import Snapshots
from sandbox_sim.web.control.errors import NOT_FOUND, error_response
from sandbox_sim.web.control.input_models import (
    LARGEST_INTEGER,
    SERVICE_ID,
    Deleted,
    Input,
    Nothing,
    ServiceListQuery,
)
from sandbox_sim.web.routes import Answer, Body, Query, Route

_NAMES = "1 to 64 characters, of letters, digits and . _ -, the first a letter or a digit"
_SNAPSHOT = "/_sandbox/snapshots/{name}"


class SnapshotBody(Input):
    """The body of `POST snapshots`: a name, and one service; without it the snapshot is of all."""

    name: str = Field(pattern=f"^{NAME_PATTERN}$", description=_NAMES)
    service_id: int | None = Field(None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)


class SnapshotPage(TypedDict):
    """A page of snapshots, newest first."""

    snapshots: list[SnapshotView]
    next: str | None


class SnapshotRoutes:
    """The state under names."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots

    def routes(self) -> Sequence[Route]:
        """The routes of snapshots."""
        route = partial(Route, group="Snapshots")
        return [
            route(
                "GET", "/_sandbox/snapshots", self.list, "list snapshots",
                answers=(Answer(SnapshotPage),), query=Query(ServiceListQuery),
            ),
            route(
                "POST", "/_sandbox/snapshots", self.save,
                "save a snapshot; one of the same name is replaced",
                answers=(Answer(SnapshotView, 201),), body=Body(SnapshotBody),
            ),
            route(
                "POST", f"{_SNAPSHOT}/restore", self.restore, "put the state of a snapshot back",
                answers=(Answer(SnapshotView),), body=Body(Nothing, optional=True),
                errors=(NOT_FOUND,),
            ),
            route(
                "DELETE", _SNAPSHOT, self.delete, "delete a snapshot",
                answers=(Answer(Deleted),), errors=(NOT_FOUND,),
            ),
        ]  # fmt: skip

    async def save(self, _request: web.Request, asked: SnapshotBody) -> SnapshotView:
        """Save the state of one service, or of all; a snapshot of the same name is replaced."""
        return shown(await self._snapshots.save(asked.name, asked.service_id))

    async def restore(self, request: web.Request, _asked: Nothing) -> SnapshotView | web.Response:
        """Put the state back, with every time moved on by what has passed since."""
        name = request.match_info["name"]
        restored = await self._snapshots.restore(name) if is_valid_name(name) else None
        return _no_such(name) if restored is None else shown(restored)

    async def delete(self, request: web.Request) -> Deleted | web.Response:
        """Delete a snapshot."""
        name = request.match_info["name"]
        deleted = is_valid_name(name) and await self._snapshots.delete(name)
        return {"deleted": 1} if deleted else _no_such(name)

    async def list(self, _request: web.Request, asked: ServiceListQuery) -> SnapshotPage:
        """List snapshots, newest first."""
        found = await self._snapshots.list(asked.listing)
        page, following = asked.page(found, attrgetter("name"))
        return {"snapshots": [shown(each) for each in page], "next": following}


def _no_such(name: str) -> web.Response:
    return error_response(NOT_FOUND, f"snapshots has no {name!r}")
