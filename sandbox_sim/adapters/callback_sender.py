"""Posts callbacks over one shared aiohttp session. Source: delivery.2, D29, D30.

Where they may go is asked where a socket is made, about the very address that it will connect to,
however that was found: no other lookup of the name lies in between, and no way to write an address
leads past it.
"""

import os
import re
import socket
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import timedelta
from functools import lru_cache
from typing import Any, Self

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from sandbox_sim import __version__
from sandbox_sim.domain.callback_hosts import CallbackHosts
from sandbox_sim.domain.callbacks import KEPT_BODY_BYTES, Answer, Trouble
from sandbox_sim.domain.text_cache import cached_by_text
from sandbox_sim.gateway.ports import Clock

# Shorter than receivers keep idle connections, so that none is reused as it is being closed.
_KEEPALIVE_S = 1.0
_NO_ADDRESS = "callback_url is no address that can be called"
# An address whose path and query need no escapes but those that they have.
_ESCAPED = re.compile(
    r"[^/?#]*//[^/?#]*(?P<path>[\w.~:/@!$&'()*+,;=%-]*)(?:\?(?P<query>[\w.~:/?@!$&'()*+,;=%-]*))?(?:#.*)?",
    re.ASCII,
)
_HEADERS = {"Content-Type": "application/json", "User-Agent": f"sandbox_sim/{__version__}"}


class _Way:
    """From a callback to its receiver: asks the rule, and keeps what it said."""

    def __init__(self, hosts: CallbackHosts, host: str) -> None:
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
_WAY: ContextVar[_Way] = ContextVar("_WAY")


def _socket(where: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket.socket:
    """A socket for an address as `getaddrinfo` describes it; `OSError` if none may go there."""
    family, kind, protocol, _, target = where
    if not _WAY.get().admits(target[0]):
        raise OSError(f"{target[0]} is refused by the setting callback_hosts")
    return socket.socket(family, kind, protocol)


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

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=_KEEPALIVE_S,
                resolver=self._resolver,
                socket_factory=_socket,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_HEADERS,
        )
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: timedelta
    ) -> Answer:
        """One POST: no redirects, a capped read, and never an exception."""
        if self._session is None:
            return Answer(None, "", 0, "the gateway is not running")
        address = _address(url)
        if address is None or address.raw_host is None:
            return Answer(None, "", 0, _NO_ADDRESS, Trouble.ADDRESS)
        way = _Way(self._hosts, address.raw_host)
        if not way.admits_host():
            return Answer(None, "", 0, way.refusal, Trouble.SETTING)
        _WAY.set(way)
        started = self._clock.monotonic()
        status, trouble, problem = None, None, None
        body_kept = bytearray()
        try:
            async with self._session.post(
                address,
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=_in_all(timeout),
            ) as response:
                status = response.status
                await _read_first_bytes(response, body_kept)
        except Exception as error:  # whatever it is, the attempt is told and another one follows
            refused = way.refusal
            trouble, problem = (Trouble.SETTING, refused) if refused else _in_words(error, timeout)
        duration_ms = round((self._clock.monotonic() - started) * 1000)
        text = body_kept.decode("utf-8", "replace")
        return Answer(status, text, duration_ms, problem, trouble)


@lru_cache(maxsize=16)
def _in_all(timeout: timedelta) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=timeout.total_seconds())


@cached_by_text(maxsize=256)
def _address(url: str) -> URL | None:
    """What is called; path and query to the letter, for a receiver may have them signed."""
    try:
        address = URL(url)
    except ValueError:
        return None
    target = _ESCAPED.fullmatch(url)
    if target is None:
        return address
    return URL.build(
        scheme=address.scheme,
        authority=address.raw_authority,
        path=target["path"] or "/",
        query_string=target["query"] or "",
        encoded=True,
    )


async def _read_first_bytes(response: aiohttp.ClientResponse, kept: bytearray) -> None:
    """Read the first 4 KiB of the body, as far as they come; what is after them is not read."""
    while len(kept) < KEPT_BODY_BYTES and not response.content.at_eof():
        kept += await response.content.read(KEPT_BODY_BYTES - len(kept))


def _in_words(error: Exception, timeout: timedelta) -> tuple[Trouble, str]:
    """What went wrong, for someone who looks for a callback that did not come."""
    match error:
        case TimeoutError():
            return Trouble.TIMEOUT, f"no answer within {timeout.total_seconds():g} s"
        case aiohttp.ClientConnectorDNSError():
            return Trouble.HOST, f"the host {error.host} is not known"
        case aiohttp.ClientConnectorCertificateError():
            said = f"the TLS certificate of {error.host} was not accepted"
            return Trouble.CERTIFICATE, f"{said}: {error.certificate_error}"
        case aiohttp.ClientConnectorSSLError():
            said = f"no TLS connection to {error.host}:{error.port}"
            return Trouble.TLS, f"{said}: {error.strerror or error}"
        case aiohttp.ClientConnectorError():
            reason = os.strerror(error.errno) if error.errno else str(error)
            return Trouble.CONNECTION, f"no connection to {error.host}:{error.port}: {reason}"
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError() | ValueError():
            return Trouble.ADDRESS, _NO_ADDRESS
        case aiohttp.ServerDisconnectedError() | ConnectionResetError():
            return Trouble.EXCHANGE, "the receiver closed the connection without an answer"
        case _:
            said = f"the exchange broke off: {str(error) or type(error).__name__}"
            return Trouble.EXCHANGE, said
