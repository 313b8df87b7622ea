"""Receivers of callbacks on loopback: one that acknowledges everything, and many that hang.

Each one that hangs has its own address, 127.1.x.y; on Linux all of 127.0.0.0/8 is loopback.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager

_TAKEN = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Receiver:
    """Acknowledges every request; `requests` has their heads and bodies."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.called = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            body = await reader.readexactly(int(length or 0))
            self.requests.append(head + body)
            self.called.set()
            writer.write(_TAKEN)
            await writer.drain()
        except (EOFError, OSError):
            self.called.set()
            self.requests.append(b"a connection without a whole request")
        finally:
            writer.close()


@asynccontextmanager
async def receiving(*hosts: str) -> AsyncIterator[Receiver]:
    """Start a receiver on one free port at each of these addresses, by default 127.0.0.1."""
    receiver = Receiver()
    servers: list[asyncio.Server] = []
    try:
        for host in hosts or ("127.0.0.1",):
            servers.append(await asyncio.start_server(receiver.take, host, receiver.port))
            receiver.port = servers[0].sockets[0].getsockname()[1]
        yield receiver
    finally:
        for server in servers:
            server.close()


@contextmanager
def hanging(count: int) -> Iterator[list[str]]:
    """Yield the addresses of this many receivers that never answer.

    Each listens and accepts nothing; the system completes the connections.
    """
    with ExitStack() as opened:
        urls = []
        port = 0
        for number in range(count):
            listener = opened.enter_context(socket.socket())
            high, low = divmod(number, 250)
            host = f"127.1.{high}.{low + 1}"
            listener.bind((host, port))
            listener.listen(8)
            port = listener.getsockname()[1]
            urls.append(f"http://{host}:{port}/callback")
        yield urls
