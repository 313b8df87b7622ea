"""A load generator: keep-alive connections over raw sockets, one request in flight on each."""

import selectors
import socket
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from urllib.parse import urlsplit

CONNECTIONS = 32
_HEAD_ENDS = b"\r\n\r\n"


@dataclass(frozen=True)
class Run:
    """The result of a run: requests a second, the 99th percentile in ms, the number of answers."""

    per_second: float
    p99_ms: float
    answers: int


class _Connection:
    """A connection that sends the next request when the answer to the last one is complete."""

    def __init__(self, wire: socket.socket) -> None:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wire = wire
        self._came = b""
        self._sent_at = 0.0

    def send(self, request: bytes) -> None:
        self._sent_at = time.perf_counter()
        self._wire.sendall(request)

    def take(self) -> float | None:
        """Read what has come; return the seconds that the answer took, once it is complete."""
        some = self._wire.recv(65_536)
        if not some:
            raise ConnectionError("the server closed the connection")
        self._came += some
        head, separator, body = self._came.partition(_HEAD_ENDS)
        if not separator or len(body) < _content_length(head):
            return None
        if not head.startswith((b"HTTP/1.1 202", b"HTTP/1.1 200")):
            raise RuntimeError(f"unexpected answer: {self._came[:500]!r}")
        self._came = b""
        return time.perf_counter() - self._sent_at


def _content_length(head: bytes) -> int:
    start = head.lower().index(b"content-length:") + len(b"content-length:")
    return int(head[start:].split(b"\r\n", 1)[0])


def run(
    url: str,
    request: Callable[[int], bytes],
    *,
    seconds: float = 0,
    count: int = 0,
    connections: int = CONNECTIONS,
) -> Run:
    """Send requests to `url` for some seconds, or a number of them."""
    host, port = urlsplit(url).netloc.split(":")
    seen: list[float] = []
    sent = 0
    with ExitStack() as opened, selectors.DefaultSelector() as selector:
        for _ in range(connections):
            wire = opened.enter_context(socket.create_connection((host, int(port))))
            selector.register(wire, selectors.EVENT_READ, _Connection(wire))
        began = time.perf_counter()
        idle = [key.data for key in selector.get_map().values()]
        while True:
            for connection in idle:
                if sent < count if count else time.perf_counter() - began < seconds:
                    sent += 1
                    connection.send(request(sent))
            if len(seen) == sent:
                break
            idle = []
            for key, _ in selector.select():
                if (taken := key.data.take()) is not None:
                    seen.append(taken)
                    idle.append(key.data)
        elapsed = time.perf_counter() - began
    return Run(len(seen) / elapsed, statistics.quantiles(seen, n=100)[98] * 1000, len(seen))
