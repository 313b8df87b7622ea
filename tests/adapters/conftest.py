"""For callback tests: a sender, a receiver on a real socket, and lookups with given answers."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from sandbox_sim.adapters.callback_sender import HttpCallbackSender
from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.records.callbacks import ReceiverResponse

BODY = '{"trans_ref":"T1","message":"Ɛyɛ"}'.encode()
TIMEOUT = timedelta(seconds=5)


@dataclass
class Receiver:
    """A server that reads a request, writes `answer`, and then runs `behave` if it is set."""

    answer: bytes = b""
    behave: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] | None = None
    head: str = ""
    body: bytes = b""
    requests: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            self.head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = self.head.lower().partition("content-length:")[2].partition("\r\n")[0]
            self.body = await reader.readexactly(int(length))
            self.requests += 1
            writer.write(self.answer)
            await writer.drain()
            if self.behave is not None:
                await self.behave(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.left.set()
            writer.close()


Listen = Callable[..., Awaitable[str]]


@pytest.fixture
async def listen() -> AsyncIterator[Listen]:
    """Starts a receiver on a free port and returns its URL."""
    servers: list[asyncio.Server] = []
    receivers: list[Receiver] = []

    async def start(receiver: Receiver, tls: ssl.SSLContext | None = None) -> str:
        server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=tls)
        servers.append(server)
        receivers.append(receiver)
        scheme = "http" if tls is None else "https"
        return f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback"

    yield start
    for server in servers:
        server.close()
    for receiver in receivers:
        for writer in receiver.writers:
            writer.transport.abort()
    await asyncio.sleep(0)


@pytest.fixture
async def sender() -> AsyncIterator[HttpCallbackSender]:
    async with HttpCallbackSender(VirtualClock()) as sender:
        yield sender


async def post(
    sender: HttpCallbackSender, url: str, timeout: timedelta = TIMEOUT
) -> ReceiverResponse:
    return await sender.send(url, {"X-Service-Signature": "5ca1ab1e"}, BODY, timeout)


def http(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class FakeDns(AbstractResolver):
    """Gives the answers in turn, and repeats the last one; `asked` has the hosts of the lookups."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.asked: list[str] = []
        self._answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        host.encode("idna")  # the standard library starts a lookup with this
        addresses = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        pass
