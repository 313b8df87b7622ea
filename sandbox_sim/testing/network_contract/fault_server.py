"""A small HTTP server that breaks exchanges on purpose.

It speaks just enough of HTTP/1.1 on a plain socket, because a real server would finish what it
began. It listens on 127.0.0.1 and a free port.
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

from sandbox_sim.testing.network_contract.peer import Fault

STRAY_PATH: Final = "/led-by-a-redirect"
_REASONS: Final = {200: "OK", 202: "Accepted", 302: "Found", 502: "Bad Gateway"}


class HttpRequest(NamedTuple):
    """A request that arrived whole; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class HttpReply(NamedTuple):
    """An answer to a request."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)


_CANNED: Final[Mapping[Fault, HttpReply]] = {
    Fault.EMPTY_200: HttpReply(200),
    Fault.TOO_MANY_REQUESTS: HttpReply(429, b"{}"),
    Fault.CONFLICT: HttpReply(409, b"{}"),
    Fault.REDIRECT: HttpReply(302, b"", (("Location", STRAY_PATH),)),
}


class FaultServer:
    """Answers with `answer`, unless a fault is due.

    note: called with each request as soon as it is there whole.
    answer: from a request to its reply.
    unknown_word: the same, for a reply in the form of the network with a word of no list.
    """

    def __init__(
        self,
        note: Callable[[HttpRequest], None],
        answer: Callable[[HttpRequest], HttpReply],
        unknown_word: Callable[[HttpRequest], HttpReply],
    ) -> None:
        self.url = ""
        self.connections = self.silences = 0
        self._note = note
        self._answer = answer
        self._unknown_word = unknown_word
        self._faults: deque[Fault] = deque()
        self._silent = asyncio.Event()

    def misbehave(self, fault: Fault) -> None:
        """Show this fault to the next request."""
        self._faults.append(fault)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve inside of the context."""
        tasks: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield
        finally:
            server.close()
            for task in tuple(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                if self._closes_before_read(writer):
                    return
                while await self._exchange(reader, writer):
                    pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether the connection stays."""
        began = await reader.readexactly(1)
        if self._closes_before_read(writer):  # a connection that was kept from an earlier request
            return False
        request = await _read(began, reader)
        self._note(request)
        fault = self._faults.popleft() if self._faults else None
        match fault:
            case Fault.CLOSE_AFTER_READ:
                return False
            case Fault.RESET_AFTER_READ:
                _reset(writer)
                return False
            case Fault.SILENCE:
                self.silences += 1
                await self._silent.wait()
        reply = self._reply(request, fault)
        raw = _written(reply._replace(body=b"") if request.method == "HEAD" else reply)
        if fault is Fault.HALF_ANSWER:
            raw = raw[:-3]
        writer.write(raw)
        await writer.drain()
        if fault is Fault.CLOSE_AFTER_ANSWER:
            return False
        keeps = request.headers.get("connection", "").lower() != "close"
        return keeps and fault is not Fault.HALF_ANSWER

    def _closes_before_read(self, writer: asyncio.StreamWriter) -> bool:
        """Reset the connection if that is the fault that is due."""
        if not self._faults or self._faults[0] is not Fault.CLOSE_BEFORE_READ:
            return False
        self._faults.popleft()
        _reset(writer)
        return True

    def _reply(self, request: HttpRequest, fault: Fault | None) -> HttpReply:
        if fault is Fault.HTML_502:
            return _page_of_a_proxy(request)
        if fault is not None and fault in _CANNED:
            return _CANNED[fault]
        if fault is Fault.UNKNOWN_WORD:
            return self._unknown_word(request)
        reply = self._answer(request)
        if fault is Fault.CUT_JSON:
            return reply._replace(body=reply.body[: len(reply.body) // 2] or b'{"status')
        if fault is Fault.HALF_ANSWER and not reply.body:
            return reply._replace(body=b"{    }")
        return reply


def _page_of_a_proxy(request: HttpRequest) -> HttpReply:
    """An error page that shows the request, with its secrets, as some do."""
    lines = [f"{request.method} {request.path}", *map(": ".join, request.headers.items())]
    shown = "\n".join([*lines, "", request.body.decode("utf-8", "replace")])
    page = f"<html><body>Bad Gateway<pre>{shown}</pre></body></html>"
    return HttpReply(502, page.encode(), (("Content-Type", "text/html"),))


@asynccontextmanager
async def not_speaking_tls() -> AsyncIterator[str]:
    """An https address where something listens that does not speak TLS."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.read(1024)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


def closed_address() -> str:
    """An address where nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


async def _read(began: bytes, reader: asyncio.StreamReader) -> HttpRequest:
    head = (began + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")[:-2]
    method, path, _version = first.split(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return HttpRequest(method, path, headers, body)


def _written(reply: HttpReply) -> bytes:
    reason = _REASONS.get(reply.status, "Status")
    lines = [f"HTTP/1.1 {reply.status} {reason}", f"Content-Length: {len(reply.body)}"]
    lines += [f"{name}: {value}" for name, value in reply.headers]
    return "\r\n".join([*lines, "", ""]).encode() + reply.body


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close the connection with a reset in place of an orderly end."""
    found = writer.get_extra_info("socket")
    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
