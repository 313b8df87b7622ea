"""Binds the port, runs a server to its end, and says why one did not start."""

import asyncio
import errno
import logging
import socket
from collections.abc import Coroutine, Sequence
from typing import Any, Final

import click

from sandbox_sim.cli.lazy_commands import INTERRUPTED
from sandbox_sim.cli.serve import running_servers
from sandbox_sim.cli.serve.running_servers import RunningServer
from sandbox_sim.config import Settings
from sandbox_sim.gateway.ports import StoreError, StoreInUse
from sandbox_sim.gateway.ports.network import NetworkConfigError

log = logging.getLogger("sandbox_sim.serve")

_LAST_PORT = 65_535
_IPV4_LOOPBACK: Final = ("127.0.0.1", "localhost")


async def bound_sockets(settings: Settings) -> Sequence[socket.socket]:
    """Sockets bound to the host and port, which do not listen yet; raises `OSError`.

    On a loopback host, IPv6 clients that call `localhost` or `[::1]` are served too.
    """
    host, port = settings.host, settings.port
    if host not in _IPV4_LOOPBACK:
        return await _bound(host, port)
    # asyncio binds a name to all of its addresses, and with port 0 to another port at each.
    sockets = await _bound(host if port else "127.0.0.1", port)
    if all(each.family != socket.AF_INET6 for each in sockets):
        sockets += await _bound_ipv6(sockets[0].getsockname()[1])
    return sockets


async def _bound(host: str, port: int) -> list[socket.socket]:
    server = await asyncio.get_running_loop().create_server(
        asyncio.Protocol, host, port, start_serving=False
    )
    sockets = [each.dup() for each in server.sockets]
    server.close()
    return sockets


async def _bound_ipv6(port: int) -> list[socket.socket]:
    """A socket bound to `[::1]`; none where this machine has no IPv6 or another program has it."""
    try:
        return await _bound("::1", port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            log.warning(
                "another program listens on [::1]:%d; clients that call localhost may reach it",
                port,
            )
        return []


def run_server(settings: Settings, server: Coroutine[Any, Any, int]) -> int:
    """Run a server until a signal comes. Returns the exit code.

    Where it cannot start, a sentence on stderr says why.
    """
    try:
        return asyncio.run(server)
    except StoreError as error:
        problem = why_not_opened(settings, error)
    except NetworkConfigError as error:
        problem = str(error)
    except OSError as error:
        problem = why_not_listening(settings, error)
    except KeyboardInterrupt:
        return INTERRUPTED
    click.echo(problem, err=True)
    return 1


def why_not_listening(settings: Settings, error: OSError) -> str:
    """Say why the port cannot be bound, which server has it, and what to do."""
    problem = f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}"
    if error.errno != errno.EADDRINUSE:
        return problem
    another = f"choose another port: --port {settings.port % _LAST_PORT + 1}"
    return _with_way_out(problem, running_servers.listening_on(settings.port), another)


def why_not_opened(settings: Settings, error: StoreError) -> str:
    """Say why the store cannot be opened, which server has it, and what to do."""
    problem = f"the store cannot be opened: {error}"
    another = "choose another store: --store sqlite:PATH or --store memory:"
    if not isinstance(error, StoreInUse):
        return f"{problem}\n  {another}" if settings.store.startswith("sqlite:") else problem
    return _with_way_out(problem, running_servers.using_the_store_of(settings), another)


def _with_way_out(problem: str, server: RunningServer | None, another: str) -> str:
    if server is None:
        return f"{problem}\n  another program uses it; {another}"
    use = f"use that server, stop it with `kill {server.pid}`, or {another}"
    return f"{problem}\n  {server.sentence()}\n  {use}"
