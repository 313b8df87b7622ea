"""A real `sandbox-sim serve` process on a free port of 127.0.0.1, and its measurements."""

import asyncio
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from attack.wire import NoAnswer, Response, exchange, request_bytes
from tests.kit import servers

_PAGE: Final = 100
LIVEZ: Final = request_bytes("/_sandbox/livez", method=b"GET")


class Server(servers.ServerProcess):
    """A server process; `serving` kills it at the end."""

    @property
    def port(self) -> int:
        """Its port."""
        return urlsplit(self.url).port or 0

    def rss_mib(self, *, most: bool = False) -> float:
        """Resident memory. most: the most since its start."""
        return servers.rss_kib(self.pid, most=most) / 1024

    async def ask(self, path: str, body: object = None, *, method: str | None = None) -> Response:
        """Send one request to the gateway or its control API; POST if there is a body."""
        verb = method or ("GET" if body is None else "POST")
        try:
            return await exchange(self.port, request_bytes(path, body, method=verb.encode()))
        except NoAnswer as error:
            raise NoAnswer(f"{verb} {path}: {error}") from error

    async def listed(self, plural: str) -> list[dict[str, Any]]:
        """All records of a kind that the control API lists, newest first."""
        found: list[dict[str, Any]] = []
        after = ""
        while True:
            response = await self.ask(f"/_sandbox/{plural}?limit={_PAGE}{after}")
            if response.status != 200:
                raise NoAnswer(f"the list of {plural} answers HTTP {response.status}")
            page = response.json()
            found += page[plural.rpartition("/")[2]]
            if page["next"] is None:
                return found
            after = f"&after={page['next']}"


@asynccontextmanager
async def serving(
    log: Path, *settings: str, store: str = "memory:", descriptors: int | None = None
) -> AsyncIterator[Server]:
    """Start a server and wait until it is ready; kill it at the end of the block.

    settings: as in `--set`. descriptors: the limit of its file descriptors (`ulimit -n`), which it
    cannot raise.
    """
    options = ("--port", "0", "--store", store, *servers.set_options(settings))
    server = Server("a server", log, options, descriptors=descriptors)
    try:
        await server.start()
        yield server
    finally:
        await server.kill()


def raise_own_limit() -> int:
    """Raise the limit of file descriptors as far as allowed. Returns the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class Probe:
    """Sends `livez` to a server every 0.1 s, each time over a new connection."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._asked: list[tuple[float, float | None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.descriptors = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Probe"]:
        """Send requests during the block."""
        asking = asyncio.create_task(self._ask())
        try:
            yield self
        finally:
            asking.cancel()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(asking, *self._tasks, return_exceptions=True)

    @property
    def longest_silence_s(self) -> float:
        """The longest time that a request has waited for its answer, in seconds."""
        now = asyncio.get_running_loop().time()
        return max(self._waits(now), default=0.0)

    def _waits(self, now: float) -> Iterator[float]:
        return ((now if ended is None else ended) - began for began, ended in self._asked)

    async def _ask(self) -> None:
        while True:
            self.descriptors = max(self.descriptors, servers.descriptors(self._server.pid))
            task = asyncio.create_task(self._one())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            await asyncio.sleep(0.1)

    async def _one(self) -> None:
        loop = asyncio.get_running_loop()
        place = len(self._asked)
        began = loop.time()
        self._asked.append((began, None))
        while True:
            try:
                await exchange(self._server.port, LIVEZ, within=60)
            except NoAnswer:
                await asyncio.sleep(0.1)
                continue
            self._asked[place] = (began, loop.time())
            return
