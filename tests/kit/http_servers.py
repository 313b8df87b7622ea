"""A server of aiohttp on this machine: a receiver of callbacks, a network, another gateway."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def listening(
    *routes: web.RouteDef,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    ends_within_s: float = 0.1,
) -> AsyncIterator[str]:
    """Serve these routes on 127.0.0.1 and yield the base URL.

    port: a free one unless it is given. ends_within_s: how long a handler may take at the end;
    with 0 aiohttp waits for it without a limit.
    """
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=ends_within_s)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
