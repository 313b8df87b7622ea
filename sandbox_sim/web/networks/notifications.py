"""Notifications of networks come in at `/_networks/{name}/…`, by POST and PUT. Source: D39.

These paths ask for no credentials: a notification is stored as it came, and whether it counts is
decided when it is read.
"""

from typing import Final

from aiohttp import web

from sandbox_sim.domain.networks.notifications import RawNotification
from sandbox_sim.gateway.networks.notifications import NetworkNotifications
from sandbox_sim.gateway.ports import Clock

NETWORKS_PREFIX: Final = "/_networks"


class NotificationHandler:
    """Stores a notification, and only then acknowledges it."""

    def __init__(self, notifications: NetworkNotifications, clock: Clock) -> None:
        self._notifications = notifications
        self._clock = clock

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """HTTP 200 with an empty body; 404 for a network that is not configured."""
        name = request.match_info["name"]
        if not self._notifications.knows(name):
            raise web.HTTPNotFound
        headers: dict[str, str] = {}
        for key, value in request.headers.items():
            lower = key.lower()
            headers[lower] = f"{headers[lower]}, {value}" if lower in headers else value
        raw = RawNotification(
            name,
            request.method,
            request.match_info["tail"],
            request.rel_url.raw_query_string,
            headers,
            await request.read(),
            self._clock.now(),
        )
        await self._notifications.receive(raw)
        return web.Response()
