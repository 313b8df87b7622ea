"""A process that serves the gateway: alone, or as one of the workers of `serve --workers N`."""

import asyncio
import contextlib
import gc
import logging
import pickle
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import click
from aiohttp import web

from sandbox_sim import logs
from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.adapters.descriptors import current_limit, divide_descriptors, raise_limit
from sandbox_sim.bootstrap import build
from sandbox_sim.cli.serve.signals import CODES, stopped_by
from sandbox_sim.config import Settings
from sandbox_sim.gateway.log_throttle import LogThrottle
from sandbox_sim.gateway.ports import StoreError
from sandbox_sim.web.transport.server import GatewayRunner

log = logging.getLogger("sandbox_sim.serve")

# Collections so rare that hundreds of thousands of live records do not stall an answer.
_GC_THRESHOLDS = (50_000, 20, 100)


async def alone(settings: Settings, ready: Callable[[int], None]) -> int:
    """Serve until a signal, and return the exit code. ready: called with the port."""
    stop = stopped_by(CODES)
    async with _gateway(settings) as runner:
        backlog = divide_descriptors(current_limit()).backlog
        await web.TCPSite(runner, settings.host, settings.port, backlog=backlog).start()
        _tune_collector()
        ready(runner.addresses[0][1])
        return await stop


def work() -> None:
    """The life of a worker. What it is to do comes by stdin, and its connections by the channel."""
    settings, channel = pickle.load(sys.stdin.buffer)  # noqa: S301 -- from our parent
    logs.configure(settings.log_level, settings.log_format)
    try:
        asyncio.run(_work(settings, socket.socket(fileno=channel)))
    except StoreError as error:
        click.echo(f"the store cannot be opened: {error}", err=True)
        raise SystemExit(1) from None


async def _work(settings: Settings, channel: socket.socket) -> None:
    stop = stopped_by({signal.SIGTERM: 0})
    loop = asyncio.get_running_loop()
    with channel:
        channel.setblocking(False)
        async with _gateway(settings) as runner:
            connections = _Connections(channel, runner, stop)
            _tune_collector()
            loop.add_reader(channel, connections.take)
            with contextlib.suppress(ConnectionError):
                channel.send(b"r")  # ready
            await stop
            loop.remove_reader(channel)


class _Connections:
    """What the parent hands over; when the parent is gone, we stop."""

    def __init__(
        self, channel: socket.socket, runner: GatewayRunner, stop: "asyncio.Future[int]"
    ) -> None:
        self._channel = channel
        self._runner = runner
        self._stop = stop
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self) -> None:
        """One connection at a turn of the loop."""
        try:
            found, descriptors, _, _ = socket.recv_fds(self._channel, 1, 1)
        except BlockingIOError:
            return
        except OSError:
            found, descriptors = b"", []
        if not found:
            asyncio.get_running_loop().remove_reader(self._channel)
            if not self._stop.done():
                self._stop.set_result(0)
        for descriptor in descriptors:
            task = asyncio.create_task(self._serve(socket.socket(fileno=descriptor)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: socket.socket) -> None:
        server = self._runner.server
        if server is not None:
            connection.setblocking(False)
            await asyncio.get_running_loop().connect_accepted_socket(server, connection)


class _AcceptErrors:
    """The event loop's exception handler: asyncio reports each connection that it cannot accept.

    It tries again after a second by itself, so one line a second is enough.
    """

    def __init__(self) -> None:
        self._logged = LogThrottle(SystemClock())

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "socket.accept()" not in context.get("message", ""):
            loop.default_exception_handler(context)
        elif self._logged.due():
            log.error("connections cannot be accepted: %s", context.get("exception"))


@asynccontextmanager
async def _gateway(settings: Settings) -> AsyncIterator[GatewayRunner]:
    """A gateway that runs, and is yet to be given something to listen on."""
    raise_limit()
    asyncio.get_running_loop().set_exception_handler(_AcceptErrors())
    runner = GatewayRunner(build(settings).app)
    try:
        await runner.setup()
        yield runner
    finally:
        await runner.cleanup()


def _tune_collector() -> None:
    """What is loaded by now stays; only this process is tuned, never an importer's."""
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    gc.enable()
