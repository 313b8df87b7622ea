"""The other side of an adapter that speaks HTTP: the fault server with the dialect of a network.

The fault server breaks exchanges on purpose. It speaks just enough of HTTP/1.1 on a plain socket,
because a real server would finish what it began. It listens on 127.0.0.1 and a free port.
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple, Protocol, runtime_checkable

from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import Network, NetworkEnvironment
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import Outcome
from sandbox_sim.testing.network_contract.peer import (
    Address,
    Decided,
    Fault,
    Peer,
    Signature,
    Submitted,
)

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


NO_SUCH_PATH: Final = HttpReply(404, b"{}")


class Dialect(Protocol):
    """How one network speaks, from its own side. An author of an adapter writes this."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What `network` configures the adapter with, and what it sends in their place, such as the
        credentials of `Authorization: Basic`; texts that appear nowhere else.
        """

    @property
    def large_operation(self) -> Operation:
        """An operation that is taken with any amount."""

    @property
    def needs_tokens(self) -> bool:
        """Whether requests carry a token that the network gave out."""

    def network(self, base_url: str, environment: NetworkEnvironment) -> Network:
        """The adapter under test, sent to this address."""

    def submitted(self, request: HttpRequest) -> Submitted | None:
        """What is submitted by a request, every field that it says; None where it is another one.

        Reads the amount exactly, with `sandbox_sim.values.peer_input.read_json` where it is JSON.
        """

    def asked(self, request: HttpRequest) -> str | None:
        """The reference that a status query asks about; None for any other request."""

    def taken(self, request: HttpRequest, *, repeated: bool) -> HttpReply:
        """The answer to a submit that is taken and not decided.

        repeated: its reference was there before.
        """

    def status(self, decided: Decided | None) -> HttpReply:
        """The answer to a status query; None for a reference that is not known.

        Raises:
            NotProven: the network has no words for it.
        """

    def unknown_word(self, request: HttpRequest) -> HttpReply:
        """A well-formed answer with a word that the network does not document."""

    def token(self, request: HttpRequest, number: int) -> HttpReply | None:
        """The answer to a request for a token, the given one in order; None for other requests."""

    def has_token(self, request: HttpRequest, oldest: int) -> bool:
        """Whether a request carries a token of this number or a later one."""

    def unauthorized(self) -> HttpReply:
        """The answer to a request without a good token."""

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        """The notification of a decision; None where the network sends none by HTTP.

        Raises:
            NotProven: the network has no words for it.
        """


@runtime_checkable
class DecidingDialect(Protocol):
    """What a `Dialect` has too whose network may decide in its answer to a submit."""

    def decided_at_once(self, request: HttpRequest, decided: Decided) -> HttpReply:
        """The answer to a submit that has this decision in it."""


@runtime_checkable
class RefusingDialect(Protocol):
    """What a `Dialect` has too that knows a refusal, which says that nothing was taken."""

    def refused(self, request: HttpRequest) -> HttpReply:
        """The answer to a submit that is refused."""


class HttpPeer:
    """A `Peer` and `DecidingPeer` made of a dialect."""

    faults = frozenset(Fault)
    addresses = frozenset(Address)

    def __init__(self, dialect: Dialect, tls_address: str) -> None:
        self.server = FaultServer(self._note, self._answer, dialect.unknown_word)
        self.secrets = dialect.secrets
        self.large_operation = dialect.large_operation
        self._dialect = dialect
        self._tls_address = tls_address
        self._decided: dict[str, Decided] = {}
        self._at_once: dict[str, Decided] = {}
        # Every submit that arrived whole, with a good token where one is needed.
        self.submits: list[Submitted] = []
        # How many requests came to where a redirect led.
        self.strays = 0
        self._tokens = 0
        self._oldest_token = 1

    @property
    def connections(self) -> int:
        """How many connections were made."""
        return self.server.connections

    @property
    def silences(self) -> int:
        """How many requests get no answer."""
        return self.server.silences

    @property
    def tokens(self) -> int | None:
        """How many tokens were given out."""
        return self._tokens if self._dialect.needs_tokens else None

    def expire_tokens(self) -> None:
        """Take no token that was given out so far."""
        self._oldest_token = self._tokens + 1

    def network(self, environment: NetworkEnvironment, address: Address) -> Network:
        """The adapter under test."""
        url = {
            Address.SERVING: self.server.url,
            Address.CLOSED: closed_address(),
            Address.BROKEN_TLS: self._tls_address,
        }[address]
        return self._dialect.network(url, environment)

    def misbehave(self, fault: Fault) -> None:
        """Show this fault to the next request."""
        self.server.misbehave(fault)

    def decide(self, decided: Decided) -> None:
        """Say this of a request from now on.

        Raises:
            NotProven: the network has no words for it.
        """
        self._dialect.status(decided)
        self._decided[decided.request.reference] = decided

    def decide_at_once(self, decided: Decided) -> bool:
        """Answer the submit of this request with this decision; False without such an answer."""
        refuses = decided.outcome is Outcome.REFUSED
        if not isinstance(self._dialect, RefusingDialect if refuses else DecidingDialect):
            return False
        self._at_once[decided.request.reference] = decided
        return True

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        """The notification of this decision."""
        return self._dialect.notification(decided, signature)

    def _note(self, request: HttpRequest) -> None:
        self.strays += request.path == STRAY_PATH
        submitted = self._submitted(request)
        if submitted is not None and self._is_authorized(request):
            self.submits.append(submitted)

    def _submitted(self, request: HttpRequest) -> Submitted | None:
        """What is submitted by a request; one that the dialect cannot read counts too."""
        try:
            return self._dialect.submitted(request)
        except Exception as error:
            return Submitted(f"unreadable, {type(error).__name__}: {error}", None)

    def _is_authorized(self, request: HttpRequest) -> bool:
        dialect = self._dialect
        return not dialect.needs_tokens or dialect.has_token(request, self._oldest_token)

    def _answer(self, request: HttpRequest) -> HttpReply:
        dialect = self._dialect
        token = dialect.token(request, self._tokens + 1)
        if token is not None:
            self._tokens += 1
            return token
        if not self._is_authorized(request):
            return dialect.unauthorized()
        submitted = self._submitted(request)
        if submitted is not None:
            at_once = self._at_once.get(submitted.reference)
            if at_once is not None:
                return self._decision(request, at_once)
            same = [each for each in self.submits if each.reference == submitted.reference]
            return dialect.taken(request, repeated=len(same) > 1)
        reference = dialect.asked(request)
        if reference is not None:
            return dialect.status(self._decided.get(reference))
        if request.method == "HEAD":  # health: the network is there
            return HttpReply(200)
        return NO_SUCH_PATH

    def _decision(self, request: HttpRequest, decided: Decided) -> HttpReply:
        dialect = self._dialect
        if isinstance(dialect, RefusingDialect) and decided.outcome is Outcome.REFUSED:
            return dialect.refused(request)
        assert isinstance(dialect, DecidingDialect)  # noqa: S101 -- `decide_at_once` looked
        return dialect.decided_at_once(request, decided)


@asynccontextmanager
async def http_peer(dialect: Dialect) -> AsyncIterator[Peer]:
    """The other side of an adapter that speaks HTTP, running inside of the context."""
    async with not_speaking_tls() as tls_address:
        peer = HttpPeer(dialect, tls_address)
        async with peer.server.running():
            yield peer
