"""The servers that run on this machine: a file for each, in the user's state directory.

A start that fails because another server has its port or its store reads these files to say which
server that is. They are never needed to serve: a folder that cannot be written to is no error.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.config import Settings, state_folder
from sandbox_sim.domain.hosts import client_host
from sandbox_sim.domain.timestamps import iso


class RunningServer(NamedTuple):
    """A server of this machine. store: the setting, with the path of a SQLite file made absolute.

    since: when it was ready, in UTC.
    """

    pid: int
    url: str
    port: int
    store: str
    since: str

    def sentence(self) -> str:
        """Which server this is."""
        return f"sandbox-sim with pid {self.pid} serves {self.url} since {self.since}"


@contextlib.contextmanager
def registered(settings: Settings, port: int) -> Iterator[None]:
    """List this process among the running servers. Removes the files of servers that have died."""
    url = f"{settings.scheme}://{client_host(settings.host, port)}"
    since = iso(SystemClock().now())
    server = RunningServer(os.getpid(), url, port, _resolved(settings), since)
    file = _folder() / f"{server.pid}.json"
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        for other in file.parent.glob("*.json"):
            if _read(other) is None:
                other.unlink(missing_ok=True)
        file.write_text(json.dumps(server._asdict()), "utf-8")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


def listening_on(port: int) -> RunningServer | None:
    """The server that listens on this port, if one of the running servers does."""
    return _find(lambda server: server.port == port)


def using_the_store_of(settings: Settings) -> RunningServer | None:
    """The server that has the store of these settings open, if one of the running servers does."""
    store = _resolved(settings)
    return _find(lambda server: server.store == store)


def _find(fits: Callable[[RunningServer], bool]) -> RunningServer | None:
    try:
        servers = [_read(file) for file in _folder().glob("*.json")]
    except OSError:
        return None
    return next((server for server in servers if server is not None and fits(server)), None)


def _read(file: Path) -> RunningServer | None:
    """The server of this file; None if it does not run any more, or the file is none of ours."""
    try:
        server = RunningServer(**json.loads(file.read_text("utf-8")))
        return server if _runs(server.pid) else None
    except (OSError, ValueError, TypeError):
        return None


def _runs(pid: int) -> bool:
    """Whether there is a process with this id; on Windows it is not checked."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it runs as another user
    return True


def _resolved(settings: Settings) -> str:
    """The store as all servers write it."""
    if not settings.store.startswith("sqlite:"):
        return settings.store if settings.store == "memory:" else settings.shown_store
    return f"sqlite:{settings.sqlite_path.resolve()}"


def _folder() -> Path:
    return state_folder() / "servers"
