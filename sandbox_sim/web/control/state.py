"""The state: `/_sandbox/reset`, `seed`, named `snapshots` and `backup`."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, TypedDict

from aiohttp import web
from pydantic import Field

from sandbox_sim.control.manual_actions import ManualActions, Snapshots
from sandbox_sim.control.seeding import Seeding
from sandbox_sim.ports import FileStore
from sandbox_sim.records.snapshots import NAME_PATTERN, SnapshotView, is_valid_name, shown
from sandbox_sim.values.json_text import viewer
from sandbox_sim.values.vocabulary import MAX_IDENTIFIER
from sandbox_sim.web.control.errors import NO_FILE, NOT_FOUND, SEEDED_ALREADY, RequestRefused
from sandbox_sim.web.control.input import (
    LARGEST_INTEGER,
    SERVICE_ID,
    Deleted,
    Input,
    Nothing,
    ServiceBody,
    ServiceListQuery,
)
from sandbox_sim.web.control.records import not_found, require_found
from sandbox_sim.web.routes import ListOf, Reply, RouteGroup, route
from sandbox_sim.web.transport.requests import PublicAddress

MAX_COUNT = 1000

# Where the callbacks of pending seeded payments go.
_SEED_INBOX = "/_sandbox/inbox/seed"


class SeedBody(Input):
    """The body of `seed`; every field is optional.

    seed: the same number makes the same people.
    count: how many payments and how many SMS to make.
    """

    seed: int = Field(
        42, ge=0, le=LARGEST_INTEGER, description=f"an integer from 0 to {LARGEST_INTEGER}"
    )
    count: int = Field(20, ge=1, le=MAX_COUNT, description=f"an integer from 1 to {MAX_COUNT}")
    service_id: int = Field(55, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)


class PersonView(TypedDict):
    """A made-up customer."""

    name: Annotated[str, "first name and surname"]
    customer_number: Annotated[str, "the phone number"]
    nw: str


_view_person = viewer(PersonView)


class Seeded(TypedDict):
    """The records that `seed` made."""

    seed: Annotated[int, "the number that they were made of"]
    service_id: int
    payments: Annotated[int, "how many were made"]
    messages: Annotated[int, "how many SMS were made"]
    fewer: Annotated[list[str], "why there are fewer than were asked for, in sentences"]
    people: Annotated[list[PersonView], "the customers of the payments and the SMS"]


_A_NAME = (
    f"1 to {MAX_IDENTIFIER} characters, of letters, digits and . _ -, the first a letter or a digit"
)

_SNAPSHOT = "/_sandbox/snapshots/{name}"


class SnapshotBody(Input):
    """The body of `POST snapshots`: a name, and a service; without `service_id` all services."""

    name: str = Field(pattern=f"^{NAME_PATTERN}$", description=_A_NAME)
    service_id: int | None = Field(None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)


class WasReset(TypedDict):
    """The service that was reset, and the records that are kept."""

    service_id: Annotated[int | None, "the service; null for all"]
    kept: Annotated[list[str], "what is kept: snapshots, and in production records of mode P"]


class BackupView(TypedDict):
    """A copy of the file of the store."""

    path: Annotated[str, "where it is, on the machine of the server"]
    bytes: Annotated[int, "its size"]


@dataclass(frozen=True, eq=False)
class StateRoutes(RouteGroup):
    """Resets, fills, saves and restores services, and backs up all of them.

    production: whether it is on. file: the store if it is a file, else None.
    """

    manual_actions: ManualActions
    seeding: Seeding
    snapshots: Snapshots
    public_address: PublicAddress
    production: bool
    file: FileStore | None

    group = "Snapshots"

    @route("POST /_sandbox/reset", "delete all records of one service or of all", group="Reset",
           optional=True)  # fmt: skip
    async def reset(self, _request: web.Request, body: ServiceBody) -> WasReset:
        """Delete all records of one service, or of all."""
        await self.manual_actions.reset(body.service_id)
        kept = ["mode P", "snapshots"] if self.production else ["snapshots"]
        return {"service_id": body.service_id, "kept": kept}

    @route("POST /_sandbox/seed", "fill a service with made-up people, payments and SMS",
           group="Seed", optional=True, errors=(SEEDED_ALREADY,))  # fmt: skip
    async def seed(self, request: web.Request, body: SeedBody) -> Seeded:
        """Add `count` payments and SMS to a service; HTTP 409 if it has any of them already."""
        inbox = self.public_address(request) + _SEED_INBOX
        seeded = await self.seeding.seed(body.seed, body.service_id, body.count, inbox)
        if seeded is None:
            problem = f"service {body.service_id} already has the records of seed {body.seed}"
            hint = "reset the service or choose another seed"
            raise RequestRefused(SEEDED_ALREADY, f"{problem}: {hint}")
        return {
            "seed": body.seed,
            "service_id": body.service_id,
            "payments": seeded.payments,
            "messages": seeded.messages,
            "fewer": list(seeded.fewer),
            "people": [*map(_view_person, seeded.sample.people)],
        }

    @route("GET /_sandbox/snapshots", "list snapshots",
           answer=ListOf("snapshots", SnapshotView), errors=(NOT_FOUND,))  # fmt: skip
    async def list(self, _request: web.Request, query: ServiceListQuery) -> Reply:
        """List snapshots, newest first."""
        found = await self.snapshots.list(query.listing)
        return query.page_view("snapshots", found, attrgetter("name"), shown)

    @route("POST /_sandbox/snapshots", "save a snapshot; one of the same name is replaced",
           status=201)  # fmt: skip
    async def save(self, _request: web.Request, body: SnapshotBody) -> SnapshotView:
        """Save the state of one service, or of all; a snapshot of the same name is replaced."""
        return shown(await self.snapshots.save(body.name, body.service_id))

    @route(f"POST {_SNAPSHOT}/restore", "restore a snapshot", optional=True)
    async def restore(self, request: web.Request, _body: Nothing) -> SnapshotView:
        """Restore the state; every time in it moves by the time since the snapshot."""
        name = request.match_info["name"]
        restored = await self.snapshots.restore(name) if is_valid_name(name) else None
        return shown(require_found(restored, "snapshots", name))

    @route(f"DELETE {_SNAPSHOT}", "delete a snapshot")
    async def delete(self, request: web.Request) -> Deleted:
        name = request.match_info["name"]
        if not (is_valid_name(name) and await self.snapshots.delete(name)):
            raise not_found("snapshots", name)
        return {"deleted": 1}

    @route("POST /_sandbox/backup", "write a copy of the SQLite file into its folder",
           group="Backup", status=201, optional=True, errors=(NO_FILE,))  # fmt: skip
    async def back_up(self, _request: web.Request, _body: Nothing) -> BackupView:
        """Write a copy of the SQLite file into its folder; other requests wait meanwhile."""
        if self.file is None:
            text = (
                "only a SQLite store can be copied: use pg_dump for Postgres; memory is not stored"
            )
            raise RequestRefused(NO_FILE, text)
        copy = await self.file.back_up()
        return {"path": str(copy.absolute()), "bytes": copy.stat().st_size}
