"""Posts callbacks over one shared aiohttp session. Source: delivery.2, D29, D30.

Where they may go is asked where a socket is made, about the very address that it will connect to,
however that was found: no other lookup of the name lies in between, and no way to write an address
leads past it.
"""

import errno
import os
import socket
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, Self

import aiohttp
from aiohttp.abc import AbstractResolver

from sandbox_sim import __version__
from sandbox_sim.domain.callbacks.allowed_hosts import CallbackHosts
from sandbox_sim.domain.callbacks.callbacks import KEPT_BODY_BYTES, Answer, FailureKind
from sandbox_sim.gateway.ports import Clock
from sandbox_sim.http_addresses import read

# Shorter than receivers keep idle connections, so that none is reused as it is being closed.
_KEEPALIVE_S = 1.0
# So many idle connections are kept for the next callbacks; the others are closed after the answer.
KEPT_IDLE: Final = 32
# Real time for the rest of an answer once its status is there: the status decides.
_BODY_S: Final = 2.0
# A call that fails by one of these never left this machine.
_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_NO_ADDRESS = "callback_url is no address that can be called"
_HEADERS = {"Content-Type": "application/json", "User-Agent": f"sandbox_sim/{__version__}"}


class _OpenSockets:
    """Counts the sockets that are open."""

    count = 0


class _Socket(socket.socket):
    """A socket that is counted until it is closed."""

    def __init__(self, family: int, kind: int, protocol: int, sockets: _OpenSockets) -> None:
        super().__init__(family, kind, protocol)
        self._sockets: _OpenSockets | None = sockets
        sockets.count += 1

    def close(self) -> None:
        """Close it."""
        if self._sockets is not None:
            self._sockets.count -= 1
            self._sockets = None
        super().close()


class _DestinationCheck:
    """From a callback to its receiver: asks the rule, and keeps what it said."""

    def __init__(self, hosts: CallbackHosts, host: str, sockets: _OpenSockets) -> None:
        self.sockets = sockets
        self._hosts = hosts
        self._host = host
        self._refused: dict[str, None] = {}
        self._goes_out = False

    def admits_host(self) -> bool:
        """Whether it is worth looking the host up."""
        return self._noted(self._host, admitted=self._hosts.admits_host(self._host))

    def admits(self, address: str) -> bool:
        """Whether a connection may go to this address."""
        admitted = self._noted(address, admitted=self._hosts.admits(self._host, address))
        self._goes_out = self._goes_out or admitted
        return admitted

    def _noted(self, target: str, *, admitted: bool) -> bool:
        if not admitted:
            self._refused[target] = None
        return admitted

    @property
    def refusal(self) -> str | None:
        """Why nothing was sent, in words; None where the rule did not keep it from going out."""
        if self._goes_out or not self._refused:
            return None
        refused = ", ".join(self._refused)
        target = self._host if refused == self._host else f"{self._host} ({refused})"
        return f"the setting callback_hosts does not let callbacks go to {target}"


# The way of the callback that this task sends. aiohttp makes its sockets in that task, or in tasks
# that it starts from there.
_DESTINATION_CHECK: ContextVar[_DestinationCheck] = ContextVar("_WAY")


@dataclass(slots=True)
class _Received:
    """What is known of an attempt at its end, however it ended."""

    way: _DestinationCheck | None = None
    status: int | None = None
    body: bytearray = field(default_factory=bytearray)


def _socket(where: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket.socket:
    """A socket for an address as `getaddrinfo` describes it; `OSError` if none may go there."""
    family, kind, protocol, _, target = where
    way = _DESTINATION_CHECK.get()
    if not way.admits(target[0]):
        raise OSError(f"{target[0]} is refused by the setting callback_hosts")
    return _Socket(family, kind, protocol, way.sockets)


class HttpCallbackSender:
    """An async context manager: the session lives inside it.

    hosts: where callbacks may go; resolver: who looks names up, by default the machine.
    """

    def __init__(
        self,
        clock: Clock,
        hosts: CallbackHosts = CallbackHosts(),  # noqa: B008 -- frozen
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._clock = clock
        self._hosts = hosts
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None
        # For calls while enough connections are idle already: it closes each after the answer.
        self._closing_session: aiohttp.ClientSession | None = None
        self._sockets = _OpenSockets()
        self._calls = 0

    @property
    def connections(self) -> int:
        """How many sockets are open, idle ones too."""
        return self._sockets.count

    async def __aenter__(self) -> Self:
        self._session = self._open(keepalive_timeout=_KEEPALIVE_S)
        self._closing_session = self._open(force_close=True)
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        for session in (self._session, self._closing_session):
            if session is not None:
                await session.close()

    def _open(self, **options: Any) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=0, resolver=self._resolver, socket_factory=_socket, **options
        )
        jar = aiohttp.DummyCookieJar()
        return aiohttp.ClientSession(connector=connector, cookie_jar=jar, headers=_HEADERS)

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout: timedelta,
        on_status: Callable[[], None] = lambda: None,
    ) -> Answer:
        """One POST: no redirects, a capped read, and never an exception.

        on_status: called as soon as the HTTP status is there.
        """
        many_idle = self._sockets.count - self._calls >= KEPT_IDLE
        session = self._closing_session if many_idle else self._session
        if session is None:
            return Answer(None, "", 0, "the gateway is not running")
        started = self._clock.monotonic()
        received = _Received()
        failure_kind, problem = None, None
        self._calls += 1
        try:
            address = read(url)
            way = received.way = _DestinationCheck(
                self._hosts, address.raw_host or "", self._sockets
            )
            if way.admits_host():
                _DESTINATION_CHECK.set(way)
                request = session.post(
                    address,
                    data=body,
                    headers=headers,
                    allow_redirects=False,
                    timeout=_in_all(timeout),
                )
                async with request as response:
                    received.status = response.status
                    on_status()
                    if response.content.is_eof():  # all of it came with the status, as it does
                        await _read_first_bytes(response, received.body)
                    else:
                        async with self._clock.timeout(_BODY_S):
                            await _read_first_bytes(response, received.body)
        except Exception as error:  # an attempt that is not recorded would never be made again
            failure_kind, problem = _in_words(error, timeout)
        finally:
            self._calls -= 1
        refusal = received.way.refusal if received.way else None
        if refusal:
            failure_kind, problem = FailureKind.SETTING, refusal
        duration_ms = round((self._clock.monotonic() - started) * 1000)
        text = received.body.decode("utf-8", "replace")
        return Answer(received.status, text, duration_ms, problem, failure_kind)


@lru_cache(maxsize=16)
def _in_all(timeout: timedelta) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=timeout.total_seconds())


async def _read_first_bytes(response: aiohttp.ClientResponse, kept: bytearray) -> None:
    """Read the first 4 KiB of the body, as far as they come; what is after them is not read."""
    while len(kept) < KEPT_BODY_BYTES and not response.content.at_eof():
        kept += await response.content.read(KEPT_BODY_BYTES - len(kept))


def _in_words(error: Exception, timeout: timedelta) -> tuple[FailureKind, str]:
    """What went wrong, for someone who looks for a callback that did not come."""
    match error:
        case TimeoutError():
            return FailureKind.TIMEOUT, f"no answer within {timeout.total_seconds():g} s"
        case aiohttp.ClientConnectorDNSError():
            return FailureKind.HOST, f"the host {error.host} is not known"
        case aiohttp.ClientConnectorCertificateError():
            said = f"the TLS certificate of {error.host} was not accepted"
            return FailureKind.CERTIFICATE, f"{said}: {error.certificate_error}"
        case aiohttp.ClientConnectorSSLError():
            said = f"no TLS connection to {error.host}:{error.port}"
            return FailureKind.TLS, f"{said}: {error.strerror or error}"
        case OSError() if error.errno in _SHORTAGES:
            return (
                FailureKind.RESOURCES,
                f"no call can leave this machine: {os.strerror(error.errno)}",
            )
        case aiohttp.ClientConnectorError():
            reason = os.strerror(error.errno) if error.errno else str(error)
            return FailureKind.CONNECTION, f"no connection to {error.host}:{error.port}: {reason}"
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError() | ValueError():
            return FailureKind.ADDRESS, _NO_ADDRESS
        case aiohttp.ServerDisconnectedError() | ConnectionResetError():
            return FailureKind.EXCHANGE, "the receiver closed the connection without an answer"
        case _:
            said = f"the exchange broke off: {str(error) or type(error).__name__}"
            return FailureKind.EXCHANGE, said
