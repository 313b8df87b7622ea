"""Binds the port, and says who has it where it is taken."""

import asyncio
import errno
import socket
from collections.abc import Sequence

from sandbox_sim.cli.serve import running_servers
from sandbox_sim.cli.serve.running_servers import RunningServer
from sandbox_sim.config import Settings
from sandbox_sim.gateway.ports import StoreError, StoreInUse

_LAST_PORT = 65_535


async def bound_sockets(settings: Settings) -> Sequence[socket.socket]:
    """Sockets bound to the host and port, which do not listen yet; raises `OSError`.

    asyncio binds a host name to all of its addresses.
    """
    bound = await asyncio.get_running_loop().create_server(
        asyncio.Protocol, settings.host, settings.port, start_serving=False
    )
    sockets = [each.dup() for each in bound.sockets]
    bound.close()
    return sockets


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
    if not isinstance(error, StoreInUse):
        return problem
    another = "choose another store: --store sqlite:PATH or --store memory:"
    return _with_way_out(problem, running_servers.using_the_store_of(settings), another)


def _with_way_out(problem: str, server: RunningServer | None, another: str) -> str:
    if server is None:
        return f"{problem}\n  another program uses it; {another}"
    use = f"use that server, stop it with `kill {server.pid}`, or {another}"
    return f"{problem}\n  {server.sentence()}\n  {use}"
