"""Sends callbacks over the connections of aiohttp. Source: delivery.2, D29, D30.

A callback does not need what `ClientSession` does for each request (redirects, cookies, proxies,
traces, a body of any kind), and that costs several times the rest. So the sender takes a connection
from the connector, and writes and reads there itself.

The setting `callback_hosts` is checked when a socket is created, for the exact address that it will
connect to. So no DNS lookup happens after the check, and no spelling of an address avoids it.
"""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import aiohttp
from aiohttp import hdrs
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_writer import _serialize_headers

from sandbox_sim import __version__
from sandbox_sim.adapters.tls import client_context
from sandbox_sim.callbacks.destinations import CallbackHosts, is_public, receiver_of
from sandbox_sim.http_addresses import parse
from sandbox_sim.ports import Clock
from sandbox_sim.records.callbacks import KEPT_BODY_BYTES, FailureKind, ReceiverResponse
from sandbox_sim.sockets import KeepAliveConnector, SocketWriteBatcher
from sandbox_sim.values.redaction import cached_by_text

# Files that Docker and Podman create in each container.
CONTAINER_FILES: Final = ("/.dockerenv", "/run/.containerenv")


def in_container() -> bool:
    """Whether this process runs in a container: whether one of `CONTAINER_FILES` exists."""
    return any(Path(marker).exists() for marker in CONTAINER_FILES)


# Receivers keep idle connections for longer, so no connection is reused while they close it.
_KEEPALIVE_S = 1.0

# This many idle connections are kept for the next callbacks; others are closed after the response.
MAX_IDLE_CONNECTIONS: Final = 32

_STATUS_NO_CONTENT: Final = 204

_NO_CONTENT: Final = (b"HTTP/1.1 204", b"HTTP/1.0 204")

# Seconds of real time for the body; the status alone decides.
_BODY_TIMEOUT_S: Final = 2.0

# This machine could not open the connection.
_SHORTAGE_ERRNOS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

# How OpenSSL names an answer that is not TLS: that of a server which speaks plain HTTP.
_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"})

_PLAIN_HTTP_HINT: Final = "it speaks plain HTTP there: use http:// in the address"

_LOCALHOST_HINT: Final = (
    "this gateway runs in a container, where localhost is the container itself: use "
    "host.docker.internal, or the setting callback_rewrites"
)

# Clients choose the receivers, so the number of warnings is limited.
_MAX_WARNINGS: Final = 100

_INVALID_ADDRESS = "callback_url is not a valid http or https address"

_HEADERS = {"Content-Type": "application/json", "User-Agent": f"sandbox_sim/{__version__}"}


# The last status of its connection, though it begins with 1.
_SWITCHING_PROTOCOLS: Final = 101

# A receiver sends one or two. Those that sent them without end stopped the gateway for seconds.
_MAX_INTERIM: Final = 10

# `HttpCallbackSender.send` has a limit for the whole attempt.
_NO_LIMITS: Final = aiohttp.ClientTimeout()


log = logging.getLogger("sandbox_sim.callbacks")


class _TooManyInterim(Exception):
    """The receiver sent interim answers (1xx) only."""

    def __str__(self) -> str:
        return f"{_MAX_INTERIM} interim answers (1xx) and no final one"


class _PublicReceiverWarnings:
    """Warns once about each receiver on the public internet: some clients name their live site."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def warn_once(self, url: str, address: str) -> None:
        """Log a warning if this address of the receiver is public and it had no warning yet."""
        receiver = receiver_of(url)
        if receiver in self._warned or len(self._warned) >= _MAX_WARNINGS or not is_public(address):
            return
        self._warned.add(receiver)
        log.warning(
            "callbacks go to %s, a public address: a live site would take sandbox payments for "
            "real ones. To send them to your own machine, set "
            'callback_rewrites = { "%s" = "http://127.0.0.1:5000" }',
            *(receiver, receiver),
        )


class _OpenSocketCount:
    """Counts the open sockets."""

    count = 0


class _Socket(socket.socket):
    """A socket that is counted until it is closed."""

    def __init__(self, family: int, kind: int, protocol: int, sockets: _OpenSocketCount) -> None:
        super().__init__(family, kind, protocol)
        self._sockets: _OpenSocketCount | None = sockets
        sockets.count += 1

    def close(self) -> None:
        if self._sockets is not None:
            self._sockets.count -= 1
            self._sockets = None
        super().close()


@dataclass(eq=False, repr=False)
class _DestinationCheck:
    """Checks the addresses of one attempt, and remembers the result."""

    hosts: CallbackHosts
    host: str
    sockets: _OpenSocketCount
    warn_once: Callable[[str], None] | None
    _refused: dict[str, None] = field(default_factory=dict)
    _any_allowed: bool = False

    def allows_host(self) -> bool:
        """Whether the name of the host may be looked up."""
        return self._record(self.host, allowed=self.hosts.allows_host(self.host))

    def allows_address(self, address: str) -> bool:
        """Whether a connection to this address is allowed."""
        allowed = self._record(address, allowed=self.hosts.allows_address(self.host, address))
        self._any_allowed = self._any_allowed or allowed
        if allowed and self.warn_once is not None:
            self.warn_once(address)
        return allowed

    def _record(self, target: str, *, allowed: bool) -> bool:
        if not allowed:
            self._refused[target] = None
        return allowed

    @property
    def refusal(self) -> str | None:
        """Why nothing was sent, in words; None where an address was allowed."""
        if self._any_allowed or not self._refused:
            return None
        refused = ", ".join(self._refused)
        target = self.host if refused == self.host else f"{self.host} ({refused})"
        return f"the setting callback_hosts does not let callbacks go to {target}"


# The check of the attempt in this task. aiohttp creates its sockets in that task, or in tasks that
# it starts from there.
_DESTINATION_CHECK: ContextVar[_DestinationCheck] = ContextVar("_DESTINATION_CHECK")


@dataclass(slots=True)
class _AttemptData:
    """What an attempt has received so far; an attempt that fails keeps it."""

    check: _DestinationCheck | None = None
    status: int | None = None
    body: bytearray = field(default_factory=bytearray)


def _socket(address_info: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket.socket:
    """A socket for an address from `getaddrinfo`; raises `OSError` if it is not allowed."""
    family, kind, protocol, _, target = address_info
    check = _DESTINATION_CHECK.get()
    if not check.allows_address(target[0]):
        raise OSError(f"{target[0]} is refused by the setting callback_hosts")
    return _Socket(family, kind, protocol, check.sockets)


class _ResponseHandler(ResponseHandler):
    """Drops the body that some receivers send with a 204.

    HTTP forbids it, so aiohttp would read it as the next answer and fail with both.
    """

    def data_received(self, data: bytes) -> None:
        if data.startswith(_NO_CONTENT):
            head, end, body = data.partition(b"\r\n\r\n")
            if body:
                self.force_close()
                data = head + end
        super().data_received(data)


class _Connector(KeepAliveConnector):
    """Opens connections that `_ResponseHandler` reads."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        handler: type[ResponseHandler] = _ResponseHandler
        self._factory = partial(handler, loop=self._loop)


@dataclass(eq=False, repr=False)
class HttpCallbackSender:
    """Posts callbacks; an async context manager that owns the connections.

    hosts: where callbacks may go.
    resolver: looks names up; by default the machine's resolver.
    trusted: a PEM file of one more certificate authority that receivers may use.
    containerized: the gateway runs in a container, so `localhost` is the container; by default
    detected.
    warns_of_public: log a warning once for each receiver on the public internet.
    """

    clock: Clock
    hosts: CallbackHosts = field(default_factory=CallbackHosts)
    resolver: AbstractResolver | None = None
    _: KW_ONLY
    trusted: Path | None = None
    containerized: bool = field(default_factory=in_container)
    warns_of_public: bool = False

    def __post_init__(self) -> None:
        self._connector: aiohttp.TCPConnector | None = None
        self._batcher: SocketWriteBatcher
        self._base_request = cached_by_text(maxsize=256)(_base_request)
        self._sockets = _OpenSocketCount()
        self._public = _PublicReceiverWarnings() if self.warns_of_public else None
        self._active_sends = 0

    @property
    def connections(self) -> int:
        """How many sockets are open, including idle ones."""
        return self._sockets.count

    async def __aenter__(self) -> Self:
        ssl_context = True if self.trusted is None else client_context(self.trusted)
        self._batcher = SocketWriteBatcher(asyncio.get_running_loop())
        self._connector = _Connector(
            limit=0,
            resolver=self.resolver,
            socket_factory=_socket,
            keepalive_timeout=_KEEPALIVE_S,
            ssl=ssl_context,
        )
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        if self._connector is not None:
            await self._connector.close()

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout: timedelta,
        on_status: Callable[[], None] = lambda: None,
    ) -> ReceiverResponse:
        """Send one POST; waits for the response, follows no redirect, and never raises.

        on_status: called as soon as the HTTP status has arrived.
        """
        if self._connector is None:
            return ReceiverResponse(None, "", 0, "the gateway is not running")
        started = self.clock.monotonic()
        data = _AttemptData()
        failure_kind, problem = None, None
        self._active_sends += 1
        try:
            request = self._base_request(url)
            check = data.check = _DestinationCheck(
                self.hosts,
                request.host,
                self._sockets,
                None if self._public is None else partial(self._public.warn_once, url),
            )
            if check.allows_host():
                _DESTINATION_CHECK.set(check)
                async with self.clock.timeout(timeout.total_seconds()):
                    connection = await self._connector.connect(request, [], _NO_LIMITS)
                    try:
                        protocol = self._write(connection, _request_bytes(request, headers, body))
                        await self._read(protocol, data, on_status)
                    except BaseException:
                        connection.close()
                        raise
                    if self._sockets.count - self._active_sends >= MAX_IDLE_CONNECTIONS:
                        connection.close()
                    else:
                        connection.release()  # closes it too if there is more of the body
        except Exception as error:  # an attempt that is not recorded would never be retried
            failure_kind, problem = _describe_failure(error, timeout)
            if self.containerized and isinstance(error, aiohttp.ClientConnectorError):
                problem += f"; {_LOCALHOST_HINT}" if error.host == "localhost" else ""
        finally:
            self._active_sends -= 1
        refusal = data.check.refusal if data.check else None
        if refusal:
            failure_kind, problem = FailureKind.SETTING, refusal
        duration_ms = round((self.clock.monotonic() - started) * 1000)
        text = data.body.decode("utf-8", "replace")
        return ReceiverResponse(data.status, text, duration_ms, problem, failure_kind)

    def _write(self, connection: Connection, request: bytes) -> ResponseHandler:
        """Write a callback at the end of this iteration; returns what reads the answer."""
        protocol = connection.protocol
        if protocol is None or protocol.transport is None or protocol.transport.is_closing():
            raise aiohttp.ServerDisconnectedError
        protocol.set_response_params(read_until_eof=True)
        self._batcher.write(protocol.transport, request)
        return protocol

    async def _read(
        self, protocol: ResponseHandler, data: _AttemptData, on_status: Callable[[], None]
    ) -> None:
        """Wait for the status, and read the beginning of the body."""
        for _ in range(_MAX_INTERIM):
            head, content = await protocol.read()
            if not 100 <= head.code < 200 or head.code == _SWITCHING_PROTOCOLS:
                break
        else:
            raise _TooManyInterim
        data.status = head.code
        on_status()
        if head.code == _STATUS_NO_CONTENT and _announces_body(head.headers):
            protocol.force_close()  # its body may come when the next callback has the connection
        if content.is_eof():  # the body nearly always comes with the status
            await _read_first_bytes(content, data.body)
        else:
            async with self.clock.timeout(_BODY_TIMEOUT_S):
                await _read_first_bytes(content, data.body)


def _base_request(url: str) -> aiohttp.ClientRequest:
    """A request without a body: the key of its connections, and the headers that all have."""
    loop = asyncio.get_running_loop()
    return aiohttp.ClientRequest(hdrs.METH_POST, parse(url), headers=_HEADERS, loop=loop)


def _request_bytes(
    request: aiohttp.ClientRequest, headers: Mapping[str, str], body: bytes
) -> bytes:
    """The bytes of the HTTP request that posts a callback."""
    sent = request.headers.copy()
    sent.update(headers)
    sent[hdrs.CONTENT_LENGTH] = str(len(body))
    return _serialize_headers(f"POST {request.url.raw_path_qs} HTTP/1.1", sent) + body


def _announces_body(headers: Mapping[str, str]) -> bool:
    length = headers.get(hdrs.CONTENT_LENGTH, "0")
    return length != "0" or hdrs.TRANSFER_ENCODING in headers


async def _read_first_bytes(content: aiohttp.StreamReader, buffer: bytearray) -> None:
    """Read at most the first 4 KiB of the body into `buffer`."""
    while len(buffer) < KEPT_BODY_BYTES and not content.at_eof():
        buffer += await content.read(KEPT_BODY_BYTES - len(buffer))


def _describe_failure(error: Exception, timeout: timedelta) -> tuple[FailureKind, str]:
    """The kind of failure, and the failure in words for a user who misses a callback."""
    match error:
        case TimeoutError():
            return FailureKind.TIMEOUT, f"no answer within {timeout.total_seconds():g} s"
        case aiohttp.ClientConnectorDNSError():
            return FailureKind.HOST, f"the host {error.host} is not known"
        case aiohttp.ClientConnectorCertificateError():
            problem = f"the TLS certificate of {error.host} was not accepted"
            return FailureKind.CERTIFICATE, f"{problem}: {error.certificate_error}"
        case aiohttp.ClientConnectorSSLError():
            problem = f"no TLS connection to {error.host}:{error.port}"
            if getattr(error.os_error, "reason", None) in _NOT_TLS:
                return FailureKind.TLS, f"{problem}: {_PLAIN_HTTP_HINT}"
            return FailureKind.TLS, f"{problem}: {error.strerror or error}"
        case OSError() if error.errno in _SHORTAGE_ERRNOS:
            return (
                FailureKind.RESOURCES,
                f"this machine cannot open a connection: {os.strerror(error.errno)}",
            )
        case aiohttp.ClientConnectorError():
            reason = os.strerror(error.errno) if error.errno else str(error)
            return FailureKind.CONNECTION, f"no connection to {error.host}:{error.port}: {reason}"
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError() | ValueError():
            return FailureKind.ADDRESS, _INVALID_ADDRESS
        case aiohttp.ServerDisconnectedError() | ConnectionResetError():
            return FailureKind.EXCHANGE, "the receiver closed the connection without an answer"
        case _:
            problem = f"the connection failed: {str(error) or type(error).__name__}"
            return FailureKind.EXCHANGE, problem
