"""The process that serves the gateway: a single one, or a worker of `serve --workers N`."""

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
from sandbox_sim.adapters import process
from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.adapters.process import current_limit, divide_descriptors, raise_limit
from sandbox_sim.bootstrap import Gateway, build, tls_context
from sandbox_sim.cli import INTERRUPTED
from sandbox_sim.cli.serve.listening import (
    EXIT_CODES,
    bound_sockets,
    ignore_signals,
    print_waiting,
    stop_on_signal,
)
from sandbox_sim.events.activity_log import LogThrottle
from sandbox_sim.ports import NetworkConfigError, RunningTasks, StoreError
from sandbox_sim.settings.schema import Settings
from sandbox_sim.web.app import CLIENTS
from sandbox_sim.web.transport.server import GRACE_S, GatewayRunner

log = logging.getLogger("sandbox_sim.serve")

# With these thresholds the garbage collector runs rarely. A run over hundreds of thousands of
# records delays answers.
_GC_THRESHOLDS = (50_000, 20, 100)


async def serve_alone(settings: Settings, ready: Callable[[int], None]) -> int:
    """Serve until a signal arrives; return the exit code. ready: called with the port."""
    stop = stop_on_signal(EXIT_CODES)
    async with serving(settings) as (gateway, port):
        ready(port)
        code = await stop
        if code == INTERRUPTED:
            _print_pending_work(gateway)
    ignore_signals()
    return code


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[tuple[Gateway, int]]:
    """Serve in this process, on the host and port of the settings; yield the gateway and the port.

    Raises `OSError` if it cannot listen, and `StoreError`.
    """
    with contextlib.ExitStack() as stack:
        # Before the store is opened, because that creates its folder and file.
        sockets = [stack.enter_context(each) for each in await bound_sockets(settings)]
        async with _gateway(settings) as (gateway, runner):
            backlog = divide_descriptors(current_limit()).backlog
            for each in sockets:
                await web.SockSite(runner, each, backlog=backlog).start()
            _tune_collector()
            yield gateway, runner.addresses[0][1]


def _print_pending_work(gateway: Gateway) -> None:
    """Print on stderr which callbacks and requests delay the stop, if any."""
    receivers, requests = gateway.deliveries.receivers, gateway.app[CLIENTS].busy
    pending = [f"the callbacks to {', '.join(receivers)}"] if receivers else []
    if requests:
        pending.append("1 open request" if requests == 1 else f"{requests} open requests")
    if pending:
        print_waiting(f"{' and '.join(pending)}, at most {GRACE_S:g} s for each")


def work() -> None:
    """Run a worker, which gets its settings from stdin and its connections over a channel."""
    settings, channel = pickle.load(sys.stdin.buffer)  # noqa: S301 -- from the parent process
    logs.configure(settings.log_level, settings.log_format)
    try:
        process.run(_work(settings, socket.socket(fileno=channel)))
    except (StoreError, NetworkConfigError) as error:
        prefix = "the store cannot be opened: " if isinstance(error, StoreError) else ""
        click.echo(f"{prefix}{error}", err=True)
        raise SystemExit(1) from None


async def _work(settings: Settings, channel: socket.socket) -> None:
    stop = stop_on_signal({signal.SIGTERM: 0})
    loop = asyncio.get_running_loop()
    with channel:
        channel.setblocking(False)
        async with _gateway(settings) as (_, runner):
            connections = _Connections(channel, runner, stop)
            _tune_collector()
            loop.add_reader(channel, connections.receive)
            with contextlib.suppress(ConnectionError):
                channel.send(b"r")  # ready
            await stop
            loop.remove_reader(channel)


class _Connections:
    """Serves the connections that the parent hands over; stops the worker if the parent dies."""

    def __init__(
        self, channel: socket.socket, runner: GatewayRunner, stop: "asyncio.Future[int]"
    ) -> None:
        self._channel = channel
        self._runner = runner
        self._stop = stop
        self._tasks = RunningTasks()

    def receive(self) -> None:
        """Receive a connection and serve it. The event loop calls this if the channel has one."""
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
            self._tasks.start(self._serve(socket.socket(fileno=descriptor)))

    async def _serve(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(self._runner.new_connection, connection)


class _AcceptErrors:
    """The exception handler of the event loop; logs connections that cannot be accepted.

    asyncio reports every failure and tries again after a second; only some are logged.
    """

    def __init__(self) -> None:
        self._logged = LogThrottle(SystemClock())

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "socket.accept()" not in context.get("message", ""):
            loop.default_exception_handler(context)
        elif self._logged.due():
            log.error("connections cannot be accepted: %s", context.get("exception"))


@asynccontextmanager
async def _gateway(settings: Settings) -> AsyncIterator[tuple[Gateway, GatewayRunner]]:
    """Start a gateway that does not listen yet; stop it at the end."""
    raise_limit()
    asyncio.get_running_loop().set_exception_handler(_AcceptErrors())
    gateway = build(settings)
    runner = GatewayRunner(gateway.app, tls=tls_context(settings))
    try:
        await runner.setup()
        yield gateway, runner
    finally:
        await runner.cleanup()


def _tune_collector() -> None:
    """Exempt all present objects from garbage collection, set the thresholds and enable it."""
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    gc.enable()
