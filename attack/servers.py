"""A real `sandbox-sim serve` process on a free port of 127.0.0.1, and its measurements."""

import asyncio
import os
import re
import resource
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from attack.wire import NoAnswer, Response, exchange, request_bytes

_READY_WITHIN_S: Final = 30.0
_STOPPED_WITHIN_S: Final = 20.0
_POLL_S: Final = 0.02
_READY: Final = re.compile(rb"sandbox-sim ready at http://127\.0\.0\.1:(\d+)")
_PAGE: Final = 100
LIVEZ: Final = request_bytes("/_sandbox/livez", method=b"GET")


class NotReady(Exception):
    """A server did not start; the text has its output."""


class Server:
    """A server process; `serving` kills it at the end."""

    def __init__(self, process: Process, port: int, log: Path) -> None:
        self._process = process
        self.port = port
        self.log = log

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.returncode is None

    @property
    def tracebacks(self) -> int:
        """The number of tracebacks in its log."""
        return self.log.read_bytes().count(b"Traceback (most recent call last)")

    def rss_mib(self) -> float:
        """Resident memory."""
        status = Path(f"/proc/{self._process.pid}/status").read_text("ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def descriptors(self) -> int:
        """The number of its open file descriptors."""
        return sum(1 for _ in Path(f"/proc/{self._process.pid}/fd").iterdir())

    async def ask(self, path: str, body: object = None, *, method: str | None = None) -> Response:
        """Send one request to the gateway or its control API; POST if there is a body."""
        verb = method or ("GET" if body is None else "POST")
        return await exchange(self.port, request_bytes(path, body, method=verb.encode()))

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

    async def kill(self) -> None:
        """SIGKILL."""
        if self.alive:
            self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Stop the process with SIGTERM, and with SIGKILL if it does not exit."""
        if self.alive:
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), _STOPPED_WITHIN_S)
        except TimeoutError:
            await self.kill()


@asynccontextmanager
async def serving(
    log: Path, *settings: str, store: str = "memory:", descriptors: int | None = None
) -> AsyncIterator[Server]:
    """Start a server and wait until it is ready; kill it at the end of the block.

    settings: as in `--set`. descriptors: the limit of its file descriptors (`ulimit -n`), which it
    cannot raise.
    """
    serve = ["serve", "--port", "0", "--store", store]
    options = [part for setting in settings for part in ("--set", setting)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SANDBOX_SIM_")}
    with log.open("ab") as output:
        begin = output.tell()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "sandbox_sim", *serve, *options),
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            preexec_fn=None if descriptors is None else _limiting(descriptors),
        )
    try:
        port = await _port(process, log, begin)
        yield Server(process, port, log)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _port(process: Process, log: Path, begin: int) -> int:
    for _ in range(int(_READY_WITHIN_S / _POLL_S)):
        said = _written(log, begin)
        if found := _READY.search(said):
            return int(found[1])
        if process.returncode is not None:
            break
        await asyncio.sleep(_POLL_S)
    raise NotReady(f"a server did not become ready: {said.decode(errors='replace')[-2000:]}")


def _written(log: Path, begin: int) -> bytes:
    return log.read_bytes()[begin:]


def _limiting(descriptors: int) -> Callable[[], None]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    return limit


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
            self.descriptors = max(self.descriptors, self._server.descriptors())
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
