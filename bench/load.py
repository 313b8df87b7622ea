"""A load generator: keep-alive connections over raw sockets, one request in flight on each."""

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

CONNECTIONS = 32


@dataclass(frozen=True)
class Run:
    """What one run saw: requests a second, the 99th percentile in ms, and how many answers."""

    per_second: float
    p99_ms: float
    answers: int


class _Connection(asyncio.Protocol):
    """Sends the next request as soon as the answer to the last one is whole."""

    def __init__(self, next_request: Callable[[], bytes | None], seen: list[float]) -> None:
        self._next_request = next_request
        self._seen = seen
        self._buffer = b""
        self._sent_at = 0.0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, body = self._buffer.partition(b"\r\n\r\n")
        if not separator or len(body) < _content_length(head):
            return
        if not self._buffer.startswith((b"HTTP/1.1 202", b"HTTP/1.1 200")):
            self.done.set_exception(RuntimeError(f"unexpected answer: {self._buffer[:500]!r}"))
            return
        self._buffer = b""
        self._seen.append(time.perf_counter() - self._sent_at)
        self._send()

    def _send(self) -> None:
        request = self._next_request()
        if request is None:
            if not self.done.done():
                self.done.set_result(None)
            self._transport.close()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(request)


def _content_length(head: bytes) -> int:
    start = head.lower().index(b"content-length:") + len(b"content-length:")
    return int(head[start:].split(b"\r\n", 1)[0])


async def run(
    url: str,
    request: Callable[[int], bytes],
    *,
    seconds: float = 0,
    count: int = 0,
    connections: int = CONNECTIONS,
) -> Run:
    """Load `url` for some seconds, or with a number of requests."""
    host, port = urlsplit(url).netloc.split(":")
    seen: list[float] = []
    sent = 0
    started = time.perf_counter()

    def next_request() -> bytes | None:
        nonlocal sent
        if sent >= count if count else time.perf_counter() - started >= seconds:
            return None
        sent += 1
        return request(sent)

    loop = asyncio.get_running_loop()
    protocols = [
        (await loop.create_connection(lambda: _Connection(next_request, seen), host, int(port)))[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(protocol.done for protocol in protocols))
    elapsed = time.perf_counter() - started
    return Run(len(seen) / elapsed, statistics.quantiles(seen, n=100)[98] * 1000, len(seen))
