"""Health and version under `/_sandbox/`. Source: docs/control-api.md."""

from collections.abc import Sequence
from functools import partial
from typing import Final, Literal, TypedDict

from aiohttp import web

from sandbox_sim import __version__
from sandbox_sim.domain.callbacks.inbox import InboxMessage
from sandbox_sim.gateway.ports import Clock, Store, Unit
from sandbox_sim.web.routes import Access, Answer, Route

# An inbox that no path can name, and a body larger than a request may be.
_PROBE_INBOX: Final = ""
_PROBE_BODY: Final = "." * 32_768


class Alive(TypedDict):
    """The process answers."""

    status: Literal["ok"]


class Ready(TypedDict):
    """The store takes writes."""

    status: Literal["ready"]


class Version(TypedDict):
    """The program and its version."""

    name: Literal["sandbox_sim"]
    version: str


class HealthRoutes:
    """What containers and scripts ask for; it needs no token."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def routes(self) -> Sequence[Route]:
        """The routes of health and version."""
        route = partial(Route, group="Health", access=Access.OPEN)
        return [
            route(
                "GET", "/_sandbox/livez", self.livez, "say that the process answers",
                answers=(Answer(Alive),),
            ),
            route(
                "GET", "/_sandbox/readyz", self.readyz, "say that the store takes writes",
                answers=(Answer(Ready),),
            ),
            route(
                "GET", "/_sandbox/version", self.version, "show the version",
                answers=(Answer(Version),),
            ),
        ]  # fmt: skip

    async def livez(self, _request: web.Request) -> Alive:
        """Say that the process answers."""
        return {"status": "ok"}

    async def readyz(self, _request: web.Request) -> Ready:
        """Write to the store and take it back: a store on a full disk can still be read."""
        probe = InboxMessage("", self._clock.now(), "", (), _PROBE_BODY, "missing")

        async def write_and_take_back(unit: Unit) -> None:
            await unit.add_inbox_message(_PROBE_INBOX, probe)
            await unit.clear_inbox(_PROBE_INBOX)

        await self._store.run(write_and_take_back)
        return {"status": "ready"}

    async def version(self, _request: web.Request) -> Version:
        """Show the version."""
        return {"name": "sandbox_sim", "version": __version__}
