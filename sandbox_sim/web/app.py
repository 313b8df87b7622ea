"""The aiohttp application of the gateway, and the keys of its parts.

`server.GatewayRunner` serves it: paths that begin with one of `CONTROL_PATHS` go to the control
API, all others to the dispatcher. The dispatcher is imported and made when the first client
connects, the control API and the pages when a request asks for one of them, so that a server starts
without them.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from aiohttp import web

from sandbox_sim.web.routes import CONTROL_PREFIX, NETWORKS_PREFIX, Route
from sandbox_sim.web.transport.client_connections import ClientConnections

if TYPE_CHECKING:
    from sandbox_sim.web.api.dispatcher import Dispatcher
    from sandbox_sim.web.control.application import ControlApi
    from sandbox_sim.web.pages.browser_pages import BrowserPages

DISPATCHER: "web.AppKey[Callable[[], Dispatcher]]" = web.AppKey("DISPATCHER")
# The beginnings of the paths of the control API, with and without the base path.
CONTROL_PATHS = web.AppKey("CONTROL_PATHS", tuple[str, ...])
# The value of `client_max_size`, which aiohttp does not expose.
MAX_BODY_BYTES = web.AppKey("MAX_BODY_BYTES", int)
# Whether plain requests go past aiohttp's protocol.
FAST_PATH = web.AppKey("FAST_PATH", bool)
CLIENTS = web.AppKey("CLIENTS", ClientConnections)
# The table of routes: those of the interface, then those of the control API.
ROUTES: web.AppKey[Callable[[], Sequence[Route]]] = web.AppKey("ROUTES")
CONTROL: "web.AppKey[Callable[[], ControlApi]]" = web.AppKey("CONTROL")
# Answers browsers outside the control API.
BROWSER_PAGES: "web.AppKey[Callable[[], BrowserPages]]" = web.AppKey("BROWSER_PAGES")
# Waits for callbacks that are being sent when the server stops, for at most this many seconds.
DRAIN: web.AppKey[Callable[[float], Awaitable[None]]] = web.AppKey("DRAIN")


def make_app(
    dispatcher: "Callable[[], Dispatcher]",
    api_routes: Callable[[], Sequence[Route]],
    control: "Callable[[], ControlApi]",
    browser_pages: "Callable[[], BrowserPages]",
    *,
    clients: ClientConnections,
    drain: Callable[[float], Awaitable[None]],
    prefixes: Sequence[str],
    max_body_bytes: int,
    fast_path: bool,
    has_networks: bool,
) -> web.Application:
    """Assemble the application.

    prefixes: what the paths of the control API may begin with.
    has_networks: whether it takes the notifications of networks too.
    """
    app = web.Application(client_max_size=max_body_bytes)
    app[ROUTES] = lambda: (*api_routes(), *control().routes)
    app[CONTROL] = control
    app[DISPATCHER] = dispatcher
    app[BROWSER_PAGES] = browser_pages
    app[CLIENTS] = clients
    app[DRAIN] = drain
    app[MAX_BODY_BYTES] = max_body_bytes
    app[FAST_PATH] = fast_path
    roots = [CONTROL_PREFIX, NETWORKS_PREFIX] if has_networks else [CONTROL_PREFIX]
    app[CONTROL_PATHS] = tuple(f"{prefix}{root}/" for prefix in prefixes for root in roots)
    return app
