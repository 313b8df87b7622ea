"""Binds the port, runs a server until a signal stops it, and explains why a start failed.

Each running server has a file in the user's state directory. If a start fails because another
server has the port or the store, the message names that server with the help of these files. A
server does not need them: errors when they are written are ignored.
"""

import asyncio
import contextlib
import errno
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import click

from sandbox_sim.adapters import process
from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.cli import INTERRUPTED
from sandbox_sim.ports import NetworkConfigError, StoreError, StoreInUse
from sandbox_sim.settings.schema import DEFAULT_PORT, Settings, state_folder
from sandbox_sim.values.hosts import client_host
from sandbox_sim.values.timestamps import iso

# The exit code for each signal.
EXIT_CODES: Final = {signal.SIGTERM: 0, signal.SIGINT: INTERRUPTED}
if sys.platform != "win32":
    EXIT_CODES[signal.SIGHUP] = 129  # the terminal was closed


def stop_on_signal(
    codes: Mapping[signal.Signals, int], before_exit: Callable[[], None] = lambda: None
) -> "asyncio.Future[int]":
    """Return a future that gets the exit code of the first of these signals.

    After that signal, SIGINT ends the process at once, and the other signals are ignored. SIGINT
    and SIGHUP stay ignored if they are at the start: a shell starts the background jobs of a
    script with SIGINT ignored, and `nohup` a command with SIGHUP ignored.

    before_exit: called just before SIGINT ends the process at once.
    """
    codes = {
        number: code
        for number, code in codes.items()
        if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN
    }
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[int] = loop.create_future()

    def exit_at_once(_number: int, _frame: FrameType | None) -> None:
        before_exit()
        # `sys.exit` would wait for threads. The store survives this, as it survives a kill.
        os._exit(INTERRUPTED)

    def stop_once(code: int) -> None:
        for number in codes:
            loop.remove_signal_handler(number)
            signal.signal(number, exit_at_once if number == signal.SIGINT else signal.SIG_IGN)
        if not stop.done():
            stop.set_result(code)

    with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C is a KeyboardInterrupt there
        for number, code in codes.items():
            loop.add_signal_handler(number, stop_once, code)
    return stop


def print_waiting(pending: str) -> None:
    """Print on stderr what the server still waits for, and how to stop it at once."""
    with contextlib.suppress(OSError):
        click.echo(f"stopping: waiting for {pending}; Ctrl-C again stops at once", err=True)


def ignore_signals() -> None:
    """Ignore these signals, because the server has stopped and the process ends anyway."""
    for number in EXIT_CODES:
        signal.signal(number, signal.SIG_IGN)


log = logging.getLogger("sandbox_sim.serve")


_MAX_PORT = 65_535
_HOST_ADVICE: Final = (
    "host must be a name or an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all"
)

_IPV4_LOOPBACK: Final = ("127.0.0.1", "localhost")


class RunningServer(NamedTuple):
    """A server of this machine.

    store: the setting, with an absolute path for SQLite. since: when it was ready, in UTC.
    """

    pid: int
    url: str
    port: int
    store: str
    since: str


async def bound_sockets(settings: Settings) -> Sequence[socket.socket]:
    """Return sockets that are bound to the host and port, but do not listen. Raises `OSError`.

    For 127.0.0.1 and localhost there is also a socket at `[::1]`.
    """
    host, port = settings.host, settings.port
    if host not in _IPV4_LOOPBACK:
        return await _bound(host, port)
    # With port 0, asyncio would bind each address of `localhost` to a different port.
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
    """A socket bound to `[::1]`; none if there is no IPv6 or another program has the port."""
    try:
        return await _bound("::1", port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            log.warning(
                "another program listens on [::1]:%d; clients of localhost may reach that program",
                port,
            )
        return []


def run_server(settings: Settings, server: Coroutine[Any, Any, int]) -> int:
    """Run a server until a signal arrives; return the exit code.

    If it cannot start, print the reason on stderr.
    """
    try:
        return process.run(server)
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
    """The message about a port that cannot be bound: why, which server has it, what to do."""
    problem = f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}"
    if error.errno == errno.EACCES:
        return f"{problem}\n  choose a port above 1023: --port {DEFAULT_PORT}"
    # asyncio of Python 3.13 gives no number where no address is of this machine.
    if error.errno in {errno.EADDRNOTAVAIL, None} or isinstance(error, socket.gaierror):
        return f"{problem}\n  {_HOST_ADVICE}"
    if error.errno != errno.EADDRINUSE:
        return problem
    advice = f"choose another port: --port {settings.port % _MAX_PORT + 1}"
    return _with_advice(problem, listening_on(settings.port), advice)


def why_not_opened(settings: Settings, error: StoreError) -> str:
    """The message about a store that cannot be opened: why, which server has it, what to do."""
    problem = f"the store cannot be opened: {error}"
    advice = "choose another store: --store sqlite:PATH or --store memory:"
    if not isinstance(error, StoreInUse):
        return f"{problem}\n  {advice}" if settings.store.startswith("sqlite:") else problem
    return _with_advice(problem, using_the_store_of(settings), advice)


def _with_advice(problem: str, server: RunningServer | None, advice: str) -> str:
    if server is None:
        return f"{problem}\n  another program uses it; {advice}"
    which = f"sandbox-sim with pid {server.pid} serves {server.url} since {server.since}"
    use = f"use that server, stop it with `kill {server.pid}`, or {advice}"
    return f"{problem}\n  {which}\n  {use}"


@contextlib.contextmanager
def registered(settings: Settings, port: int) -> Iterator[None]:
    """Write the file of this server, and delete it at the end; delete files of dead servers."""
    url = f"{settings.scheme}://{client_host(settings.host, port)}"
    since = iso(SystemClock().now())
    server = RunningServer(os.getpid(), url, port, _store_name(settings), since)
    name = f"{server.pid}.json"
    with contextlib.suppress(OSError):
        folder = _servers_folder()
        folder.mkdir(parents=True, exist_ok=True)
        for other in folder.glob("*.json"):
            if _read_server(other) is None:
                other.unlink(missing_ok=True)
        (folder / name).write_text(json.dumps(server._asdict()), "utf-8")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            (_servers_folder() / name).unlink(missing_ok=True)


def listening_on(port: int) -> RunningServer | None:
    """The running server that listens on this port, or None."""
    return _find(lambda server: server.port == port)


def using_the_store_of(settings: Settings) -> RunningServer | None:
    """The running server that uses the store of these settings, or None."""
    store = _store_name(settings)
    return _find(lambda server: server.store == store)


def _find(matches: Callable[[RunningServer], bool]) -> RunningServer | None:
    try:
        servers = [_read_server(file) for file in _servers_folder().glob("*.json")]
    except OSError:
        return None
    return next((server for server in servers if server is not None and matches(server)), None)


def _read_server(file: Path) -> RunningServer | None:
    """The server of this file; None if it stopped or the file cannot be read."""
    try:
        server = RunningServer(**json.loads(file.read_text("utf-8")))
        return server if _process_exists(server.pid) else None
    except (OSError, ValueError, TypeError):
        return None


def _process_exists(pid: int) -> bool:
    """Whether there is a process with this id; on Windows always true."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except OSError as error:  # EPERM: it runs as another user
        return error.errno != errno.ESRCH
    return True


def _store_name(settings: Settings) -> str:
    """The store as it is written in the files of servers."""
    if not settings.store.startswith("sqlite:"):
        return settings.store if settings.store == "memory:" else settings.shown_store
    return f"sqlite:{settings.sqlite_path.resolve()}"


def _servers_folder() -> Path:
    return state_folder() / "servers"
