"""The other side of an HTTP adapter: the fault server with the dialect of a network.

The fault server breaks exchanges on purpose. It implements only a part of HTTP/1.1, on a plain
socket, because a real server would complete its answers. It listens on a free port of 127.0.0.1.
"""

import asyncio
import atexit
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple, Protocol, runtime_checkable

from sandbox_sim.operations import Operation
from sandbox_sim.ports import RunningTasks
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
    """A complete request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class HttpReply(NamedTuple):
    """An answer to a request."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)


_FIXED_REPLIES: Final[Mapping[Fault, HttpReply]] = {
    Fault.EMPTY_200: HttpReply(200),
    Fault.TOO_MANY_REQUESTS: HttpReply(429, b"{}"),
    Fault.CONFLICT: HttpReply(409, b"{}"),
    Fault.REDIRECT: HttpReply(302, b"", (("Location", STRAY_PATH),)),
}


@dataclass(eq=False, repr=False)
class FaultServer:
    """Answers with `answer`, unless a fault is due.

    note: called with each complete request.
    answer: returns the reply to a request.
    unknown_word: returns a reply with a word that the network does not document.
    """

    note: Callable[[HttpRequest], None]
    answer: Callable[[HttpRequest], HttpReply]
    unknown_word: Callable[[HttpRequest], HttpReply]

    def __post_init__(self) -> None:
        self.url = ""
        self.connections = self.silences = 0
        self._faults: deque[Fault] = deque()
        self._never_set = asyncio.Event()

    def misbehave(self, fault: Fault) -> None:
        """Apply this fault to the next request."""
        self._faults.append(fault)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve for the duration of the context."""
        tasks = RunningTasks()
        server = await asyncio.start_server(
            lambda *streams: tasks.start(self._serve(*streams)), "127.0.0.1", 0
        )
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield
        finally:
            server.close()
            await tasks.cancel()
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
        """Serve one request; return whether the connection stays open."""
        first_byte = await reader.readexactly(1)
        if self._closes_before_read(writer):  # a kept-alive connection
            return False
        request = await _read_request(first_byte, reader)
        self.note(request)
        fault = self._faults.popleft() if self._faults else None
        match fault:
            case Fault.CLOSE_AFTER_READ:
                return False
            case Fault.RESET_AFTER_READ:
                _reset(writer)
                return False
            case Fault.SILENCE:
                self.silences += 1
                await self._never_set.wait()
        reply = self._reply(request, fault)
        raw = _serialised(reply._replace(body=b"") if request.method == "HEAD" else reply)
        if fault is Fault.HALF_ANSWER:
            raw = raw[:-3]
        writer.write(raw)
        await writer.drain()
        if fault is Fault.CLOSE_AFTER_ANSWER:
            return False
        keeps = request.headers.get("connection", "").lower() != "close"
        return keeps and fault is not Fault.HALF_ANSWER

    def _closes_before_read(self, writer: asyncio.StreamWriter) -> bool:
        """If the due fault is CLOSE_BEFORE_READ, reset the connection and return True."""
        if not self._faults or self._faults[0] is not Fault.CLOSE_BEFORE_READ:
            return False
        self._faults.popleft()
        _reset(writer)
        return True

    def _reply(self, request: HttpRequest, fault: Fault | None) -> HttpReply:
        if fault is Fault.HTML_502:
            return _proxy_error_page(request)
        if fault is not None and fault in _FIXED_REPLIES:
            return _FIXED_REPLIES[fault]
        if fault is Fault.UNKNOWN_WORD:
            return self.unknown_word(request)
        reply = self.answer(request)
        if fault is Fault.CUT_JSON:
            return reply._replace(body=reply.body[: len(reply.body) // 2] or b'{"status')
        if fault is Fault.HALF_ANSWER and not reply.body:
            return reply._replace(body=b"{    }")
        return reply


def _proxy_error_page(request: HttpRequest) -> HttpReply:
    """An error page that shows the request with its secrets, as some proxies do."""
    lines = [f"{request.method} {request.path}", *map(": ".join, request.headers.items())]
    shown = "\n".join([*lines, "", request.body.decode("utf-8", "replace")])
    page = f"<html><body>Bad Gateway<pre>{shown}</pre></body></html>"
    return HttpReply(502, page.encode(), (("Content-Type", "text/html"),))


@asynccontextmanager
async def server_without_tls() -> AsyncIterator[str]:
    """The https address of a server that does not support TLS."""

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
    """An address where nothing listens, and where nothing can while this process runs."""
    return f"http://127.0.0.1:{_bound_socket().getsockname()[1]}"


@cache
def _bound_socket() -> socket.socket:
    """A socket that is bound and does not listen, so the system refuses connections to it."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    atexit.register(bound.close)
    return bound


async def _read_request(first_byte: bytes, reader: asyncio.StreamReader) -> HttpRequest:
    head = (first_byte + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")[:-2]
    method, path, _version = first.split(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return HttpRequest(method, path, headers, body)


def _serialised(reply: HttpReply) -> bytes:
    reason = _REASONS.get(reply.status, "Status")
    lines = [f"HTTP/1.1 {reply.status} {reason}", f"Content-Length: {len(reply.body)}"]
    lines += [f"{name}: {value}" for name, value in reply.headers]
    return "\r\n".join([*lines, "", ""]).encode() + reply.body


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close the connection with a TCP reset."""
    found = writer.get_extra_info("socket")
    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


NO_SUCH_PATH: Final = HttpReply(404, b"{}")


class Dialect(Protocol):
    """The requests and answers of a network. The author of an adapter writes this."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that `network` gives the adapter, also in the form in which they are sent,
        such as the value of `Authorization: Basic`. They must appear nowhere else.
        """

    @property
    def large_operation(self) -> Operation:
        """An operation that is accepted with any amount."""

    @property
    def needs_tokens(self) -> bool:
        """Whether requests need a token that the network issues."""

    def network(self, base_url: str, environment: NetworkEnvironment) -> Network:
        """The adapter under test, with this address."""

    def submitted(self, request: HttpRequest) -> Submitted | None:
        """The submit in a request, with every field that it contains; None for other requests.

        The amount must be exact: read JSON with `sandbox_sim.values.peer_input.read_json`.
        """

    def asked(self, request: HttpRequest) -> str | None:
        """The reference in a status query; None for other requests."""

    def taken(self, request: HttpRequest, *, repeated: bool) -> HttpReply:
        """The answer to a submit that is accepted and not decided.

        repeated: whether the reference was submitted before.
        """

    def status(self, decided: Decided | None) -> HttpReply:
        """The answer to a status query. decided: None for an unknown reference.

        Raises:
            NotProven: the network has no word for it.
        """

    def unknown_word(self, request: HttpRequest) -> HttpReply:
        """A well-formed answer with a word that the network does not document."""

    def token(self, request: HttpRequest, number: int) -> HttpReply | None:
        """The answer to a request for a token, with the token `number`; None for other requests."""

    def has_token(self, request: HttpRequest, oldest: int) -> bool:
        """Whether a request has the token with this number or a later one."""

    def unauthorized(self) -> HttpReply:
        """The answer to a request without a valid token."""

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        """The notification of a decision; None if the network sends none by HTTP.

        Raises:
            NotProven: the network has no word for it.
        """


@runtime_checkable
class DecidingDialect(Protocol):
    """An addition to `Dialect` for a network that may decide in its answer to a submit."""

    def decided_at_once(self, request: HttpRequest, decided: Decided) -> HttpReply:
        """The answer to a submit, with this decision."""


@runtime_checkable
class RefusingDialect(Protocol):
    """An addition to `Dialect` for a network with a definite refusal of a submit."""

    def refused(self, request: HttpRequest) -> HttpReply:
        """The answer that refuses a submit."""


class HttpPeer(FaultServer):
    """A `Peer` and `DecidingPeer` for a dialect."""

    faults = frozenset(Fault)
    addresses = frozenset(Address)

    def __init__(self, dialect: Dialect, tls_address: str) -> None:
        super().__init__(self._record, self._answer, dialect.unknown_word)
        self.secrets = dialect.secrets
        self.large_operation = dialect.large_operation
        self._dialect = dialect
        self._tls_address = tls_address
        self._status_decisions: dict[str, Decided] = {}
        self._immediate_decisions: dict[str, Decided] = {}
        # The complete submits that arrived, with a valid token if one is needed.
        self.submits: list[Submitted] = []
        # How many requests followed a redirect.
        self.strays = 0
        self._tokens = 0
        self._oldest_token = 1

    @property
    def tokens(self) -> int | None:
        """How many tokens were issued; None if the network uses none."""
        return self._tokens if self._dialect.needs_tokens else None

    def expire_tokens(self) -> None:
        """Refuse all tokens that were issued so far."""
        self._oldest_token = self._tokens + 1

    def network(self, environment: NetworkEnvironment, address: Address) -> Network:
        """The adapter under test."""
        url = {
            Address.SERVING: self.url,
            Address.CLOSED: closed_address(),
            Address.BROKEN_TLS: self._tls_address,
        }[address]
        return self._dialect.network(url, environment)

    def decide(self, decided: Decided) -> None:
        """Give this decision as the status of its request from now on.

        Raises:
            NotProven: the network has no word for it.
        """
        self._dialect.status(decided)
        self._status_decisions[decided.request.reference] = decided

    def decide_at_once(self, decided: Decided) -> bool:
        """Answer the submit of this request with this decision; False if that is impossible."""
        refuses = decided.outcome is Outcome.REFUSED
        if not isinstance(self._dialect, RefusingDialect if refuses else DecidingDialect):
            return False
        self._immediate_decisions[decided.request.reference] = decided
        return True

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        """The notification of this decision."""
        return self._dialect.notification(decided, signature)

    def _record(self, request: HttpRequest) -> None:
        self.strays += request.path == STRAY_PATH
        submitted = self._submitted(request)
        if submitted is not None and self._is_authorized(request):
            self.submits.append(submitted)

    def _submitted(self, request: HttpRequest) -> Submitted | None:
        """The submit in a request; a request that the dialect cannot read counts as one."""
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
            at_once = self._immediate_decisions.get(submitted.reference)
            if at_once is not None:
                return self._decision(request, at_once)
            same = [each for each in self.submits if each.reference == submitted.reference]
            return dialect.taken(request, repeated=len(same) > 1)
        reference = dialect.asked(request)
        if reference is not None:
            return dialect.status(self._status_decisions.get(reference))
        if request.method == "HEAD":  # a health check
            return HttpReply(200)
        return NO_SUCH_PATH

    def _decision(self, request: HttpRequest, decided: Decided) -> HttpReply:
        dialect = self._dialect
        if isinstance(dialect, RefusingDialect) and decided.outcome is Outcome.REFUSED:
            return dialect.refused(request)
        assert isinstance(dialect, DecidingDialect)  # noqa: S101 -- `decide_at_once` checked it
        return dialect.decided_at_once(request, decided)


@asynccontextmanager
async def http_peer(dialect: Dialect) -> AsyncIterator[Peer]:
    """Run the other side of an HTTP adapter for the duration of the context."""
    async with server_without_tls() as tls_address:
        peer = HttpPeer(dialect, tls_address)
        async with peer.running():
            yield peer
