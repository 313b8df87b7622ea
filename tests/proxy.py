"""A proxy for Postgres that a test can cut, freeze, or break during a commit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal
from urllib.parse import urlsplit

from tests.kit.servers import free_port
from tests.postgres import address

LOST = (ConnectionError, asyncio.IncompleteReadError)


class Proxy:
    """Forwards data to the server of `target`; `url` is the same database through the proxy.

    lose: the part of the next commit that is lost: the question (nothing is saved) or the answer.
    """

    def __init__(self, target: str) -> None:
        self.lose: Literal["question", "answer"] | None = None
        self._target = address(target)
        self._parts = urlsplit(target)
        self._port = free_port()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    @property
    def url(self) -> str:
        user, at, _ = self._parts.netloc.rpartition("@")
        netloc = f"{user}{at}127.0.0.1:{self._port}"
        return self._parts._replace(netloc=netloc, query="").geturl()

    async def open(self) -> None:
        """Let connections through, at the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    async def cut(self) -> None:
        """Close all connections and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._abort()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def freeze(self) -> None:
        """Hold back all data from now on, and keep the connections open."""
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        with suppress(OSError):
            if isinstance(self._target, str):
                inner_reader, inner = await asyncio.open_unix_connection(self._target)
            else:
                inner_reader, inner = await asyncio.open_connection(*self._target)
            self._writers.add(inner)
            answers = asyncio.create_task(self._forward("answer", inner_reader, writer))
            try:
                await self._forward("question", reader, inner)
            finally:
                for each in (inner, writer):
                    each.transport.abort()
                await answers
                self._writers.discard(inner)
        writer.transport.abort()
        self._writers.discard(writer)

    async def _forward(
        self, part: str, reader: asyncio.StreamReader, to: asyncio.StreamWriter
    ) -> None:
        with suppress(*LOST):
            while data := await reader.read(65536):
                await self._flowing.wait()
                if self.lose == part and b"COMMIT" in data:
                    self.lose = None
                    break
                to.write(data)
                await to.drain()
        to.transport.abort()


@asynccontextmanager
async def proxy(target: str) -> AsyncIterator[Proxy]:
    """Open a proxy, and close it at the end of the block."""
    made = Proxy(target)
    await made.open()
    try:
        yield made
    finally:
        made.thaw()
        await made.cut()
