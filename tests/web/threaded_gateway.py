"""A gateway in its own thread, for tests that block while they wait for its answers."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from aiohttp import web

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.bootstrap import build
from sandbox_sim.settings.schema import Settings
from sandbox_sim.web.transport.server import GatewayRunner

SOON = 10  # seconds; a bound, reached only when something is broken


@contextlib.contextmanager
def running(store: str) -> Iterator[str]:
    """Run a gateway on this store with a frozen clock, and yield its address."""
    started, found = threading.Event(), list[Any]()
    thread = threading.Thread(target=asyncio.run, args=(_serve(store, started, found),))
    thread.start()
    assert started.wait(SOON)
    port, loop, stop = found
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(SOON)
        assert not thread.is_alive()


async def _serve(store: str, started: threading.Event, found: list[Any]) -> None:
    gateway = build(Settings(store=store), clock=VirtualClock(), ids=RandomIds(seed=1))
    runner = GatewayRunner(gateway.app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    stop = asyncio.Event()
    found += [runner.addresses[0][1], asyncio.get_running_loop(), stop]
    started.set()
    await stop.wait()
    await runner.cleanup()
