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


# Whether an answer, its head and its body, is the right one.
Right = Callable[[bytes, bytes], bool]


@dataclass(frozen=True)
class Run:
    """The result of a run: right answers a second, percentiles in ms, the number of answers.

    wrong: how many of the answers were not right.
    """

    per_second: float
    p99_ms: float
    answers: int
    p50_ms: float = 0
    wrong: int = 0


class WrongAnswer(Exception):
    """An answer that is not right, where every answer has to be."""


class _Connection:
    """A connection that sends the next request when the answer to the last one is complete.

    It opens again where the server closes it after an answer.
    """

    def __init__(self, address: tuple[str, int], selector: selectors.BaseSelector) -> None:
        self._address = address
        self._selector = selector
        self._came = b""
        self._sent_at = 0.0
        self._open()

    def _open(self) -> None:
        self._wire = socket.create_connection(self._address)
        self._wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(self._wire, selectors.EVENT_READ, self)

    def close(self) -> None:
        if self._wire.fileno() >= 0:
            self._selector.unregister(self._wire)
            self._wire.close()

    def send(self, request: bytes) -> None:
        self._sent_at = time.perf_counter()
        if self._wire.fileno() < 0:
            self._open()
        self._wire.sendall(request)

    def take(self) -> tuple[float, bytes, bytes] | None:
        """Read what has come; return the seconds, head and body of an answer that is complete."""
        some = self._wire.recv(65_536)
        if not some:
            raise ConnectionError("the server closed the connection")
        self._came += some
        head, separator, body = self._came.partition(_HEAD_ENDS)
        if not separator:
            return None
        lower = head.lower()
        if not _is_complete(lower, body):
            return None
        self._came = b""
        took = time.perf_counter() - self._sent_at
        if b"\r\nconnection: close" in lower:
            self.close()
        return took, head, body


def _is_complete(head: bytes, body: bytes) -> bool:
    name = b"\r\ncontent-length:"
    if (start := head.find(name)) < 0:
        return body.endswith(b"0\r\n\r\n")  # chunked
    return len(body) >= int(head[start + len(name) :].split(b"\r\n", 1)[0])


def _accepted(head: bytes, body: bytes) -> bool:
    if head.startswith((b"HTTP/1.1 202", b"HTTP/1.1 200")):
        return True
    raise WrongAnswer(f"{head!r} {body[:500]!r}")


def run(
    url: str,
    request: Callable[[int], bytes],
    *,
    seconds: float = 0,
    count: int = 0,
    connections: int = CONNECTIONS,
    right: Right = _accepted,
) -> Run:
    """Send requests to `url` for some seconds, or a number of them.

    Raises `WrongAnswer` if one is refused, unless `right` decides.
    """
    host, port = urlsplit(url).netloc.split(":")
    seen: list[float] = []
    sent = wrong = 0
    with selectors.DefaultSelector() as selector, ExitStack() as opened:
        idle = [_Connection((host, int(port)), selector) for _ in range(connections)]
        for connection in idle:
            opened.callback(connection.close)
        began = time.perf_counter()
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
                    took, head, body = taken
                    seen.append(took)
                    wrong += not right(head, body)
                    idle.append(key.data)
        elapsed = time.perf_counter() - began
    percentiles = statistics.quantiles(seen, n=100)
    return Run(
        (len(seen) - wrong) / elapsed,
        percentiles[98] * 1000,
        len(seen),
        percentiles[49] * 1000,
        wrong,
    )
