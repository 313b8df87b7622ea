"""Tells open pages that something changed, without saying what: they ask for themselves again.

An open page costs a payment one function call: events are put together, and nothing is converted to
JSON, as it is for readers of `events`.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from sandbox_sim.gateway.control.event_feed import Feed
from sandbox_sim.gateway.ports import Clock, Store
from sandbox_sim.web.event_stream import CHANGED, KEEP_ALIVE, KEEP_ALIVE_S, open_stream
from sandbox_sim.web.routes import CONTROL_PREFIX, Answer, Route

# All in seconds of real time. One event comes at most in each pause.
_PAUSE_S: Final = 0.5
_LOOK_S: Final = 0.5
# How often pages look where other servers write to the store, too.
_SHARED_S: Final = 2.0


class ChangeRoutes:
    """The route that pages hold open.

    feed: is closed when the server stops. shared: other servers write to the store, too.
    """

    def __init__(self, store: Store, feed: Feed, clock: Clock, *, shared: bool) -> None:
        self._store = store
        self._feed = feed
        self._clock = clock
        self._shared = shared

    def routes(self) -> Sequence[Route]:
        """The route."""
        return [
            Route(
                "GET", f"{CONTROL_PREFIX}/changes", self.changes,
                "say that something may have changed, at most twice a second",
                "Events", (Answer(None, media_type="text/event-stream"),),
            ),
        ]  # fmt: skip

    async def changes(self, request: web.Request) -> web.StreamResponse:
        """Server-Sent Events without content, until the reader goes or the server stops."""
        changed = asyncio.Event()
        unwatch = self._store.watch(changed.set)
        try:
            answer = await open_stream(request)
            while await self._next(changed):
                await answer.write(CHANGED if changed.is_set() or self._shared else KEEP_ALIVE)
                changed.clear()
                await self._clock.pause(_PAUSE_S)
        finally:
            unwatch()
        return answer

    async def _next(self, changed: asyncio.Event) -> bool:
        """Wait for a change, or until it is time to say something; False where the server stops."""
        longest_s = _SHARED_S if self._shared else KEEP_ALIVE_S
        until = self._clock.monotonic() + longest_s
        while not changed.is_set() and self._clock.monotonic() < until:
            if self._feed.closed:
                return False
            await self._clock.wait_at_most(changed, _LOOK_S)
        return not self._feed.closed
