"""Posts callbacks over one shared aiohttp session. Source: delivery.2, D29, D30."""

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Self

import aiohttp

from sandbox_sim import __version__
from sandbox_sim.domain.callbacks import KEPT_BODY_BYTES, Answer, Trouble
from sandbox_sim.gateway.ports import Clock

# Shorter than receivers keep idle connections, so that none is reused as it is being closed.
_KEEPALIVE_S = 1.0
_HEADERS = {"Content-Type": "application/json", "User-Agent": f"sandbox_sim/{__version__}"}


class HttpCallbackSender:
    """An async context manager: the session lives inside it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE_S),
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
        started = self._clock.monotonic()
        status, trouble, problem = None, None, None
        body_kept = bytearray()
        try:
            async with self._session.post(
                url,
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout.total_seconds()),
            ) as response:
                status = response.status
                await _read_first_bytes(response, body_kept)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            trouble, problem = _in_words(error, timeout)
        duration_ms = round((self._clock.monotonic() - started) * 1000)
        body_text = body_kept.decode("utf-8", "replace")
        return Answer(status, body_text, duration_ms, problem, trouble)


async def _read_first_bytes(response: aiohttp.ClientResponse, kept: bytearray) -> None:
    """Read the first 4 KiB of the body, as far as they come; what is after them is not read."""
    while len(kept) < KEPT_BODY_BYTES:
        chunk = await response.content.read(KEPT_BODY_BYTES - len(kept))
        if not chunk:
            break
        kept += chunk


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
            return Trouble.ADDRESS, "callback_url is no address that can be called"
        case aiohttp.ServerDisconnectedError() | ConnectionResetError():
            return Trouble.EXCHANGE, "the receiver closed the connection without an answer"
        case _:
            said = f"the exchange broke off: {str(error) or type(error).__name__}"
            return Trouble.EXCHANGE, said
