"""The tokens of one product: cached, and renewed by one request for all that wait. Source: D39.

A token is renewed when MTN refuses it with 401, and from a minute before it expires. Until it
expires, payments use it and do not wait for the new one.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from sandbox_sim.networks.http_client import NetworkHttpClient, NoAnswer, advice
from sandbox_sim.ports.clock import Clock
from sandbox_sim.records.exchanges import Scrubber
from sandbox_sim.values.peer_input import amount_of, document_of

# A token is renewed this long before it expires, but not before half of its time is over.
RENEWAL_MARGIN_S: Final = 60.0

# The lifetime of a token from an answer without `expires_in`: MTN's usual one. If the true one is
# shorter, MTN answers 401.
DEFAULT_LIFETIME_S: Final = 3600.0

# The settings for a token; each begins with the name of its product.
_CREDENTIALS: Final = "api_user, api_key and subscription_key of this product"


class NoToken(NamedTuple):
    """Why there is no token.

    network_fault: whether MTN caused it; the circuit breaker counts these.
    """

    problem: str
    network_fault: bool


class _Token(NamedTuple):
    """A token, with its times in seconds of `Clock.monotonic`."""

    text: str
    renew_at: float
    ends_at: float


@dataclass(eq=False, repr=False)
class Tokens:
    """Gets and caches the tokens of one product.

    url, headers: of the request for a token.
    """

    http: NetworkHttpClient
    url: str
    headers: Mapping[str, str]
    clock: Clock
    scrubber: Scrubber

    def __post_init__(self) -> None:
        self._token: _Token | None = None
        self._newest = ""
        self._renewal: asyncio.Task[str | NoToken] | None = None

    async def get(self, within_s: float, *, refused: str = "") -> str | NoToken:
        """A token, from the cache while it is valid.

        within_s: how long to wait for a new one, in real time.
        refused: a token that MTN refused; it is not returned again.
        """
        token = self._token
        if token is not None and token.text == refused:
            self._token = token = None
        now = self.clock.monotonic()
        if token is None or now >= token.ends_at:
            return await self.renew(within_s)
        if now >= token.renew_at:
            self._start_renewal()
        return token.text

    async def renew(self, within_s: float) -> str | NoToken:
        """A new token; one request for all that wait for it at the same time."""
        renewal = self._start_renewal()
        try:
            async with self.clock.timeout(within_s):
                await asyncio.wait({renewal})
        except TimeoutError:
            return NoToken(f"no token within {within_s:g} s", network_fault=True)
        if renewal.cancelled():
            return NoToken("the network was closed", network_fault=False)
        return renewal.result()

    async def close(self) -> None:
        """Cancel the renewal under way; those that wait for it get `NoToken`."""
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait({self._renewal})
        self._token = self._renewal = None

    def _start_renewal(self) -> "asyncio.Task[str | NoToken]":
        """The renewal under way; a new one if there is none."""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._fetch())
        return self._renewal

    async def _fetch(self) -> str | NoToken:
        answer = await self.http.ask("token", "POST", self.url, self.headers)
        if isinstance(answer, NoAnswer):
            return NoToken(f"no token: {answer.problem}", answer.network_fault)
        text, lifetime = _parse_token(answer.body) if answer.status == 200 else ("", 0.0)
        if not text:
            wrong = advice(answer.status, _CREDENTIALS)
            problem = f"no token: HTTP {answer.status}{wrong and f': {wrong}'}"
            return NoToken(problem, answer.is_server_error)
        if self._newest != text:
            self.scrubber.forget(self._newest)
            self.scrubber.add(text)
            self._newest = text
        now = self.clock.monotonic()
        margin = min(RENEWAL_MARGIN_S, lifetime / 2)
        self._token = _Token(text, now + lifetime - margin, now + lifetime)
        return text


def _parse_token(body: bytes) -> tuple[str, float]:
    """The token of an answer and its lifetime in seconds; an empty token if it has none."""
    document = document_of(body)
    text, lifetime = document.get("access_token"), document.get("expires_in")
    # A token goes into a header.
    if not isinstance(text, str) or not text or not all("!" <= each <= "~" for each in text):
        return "", 0.0
    seconds = amount_of(lifetime)
    return text, float(seconds) if seconds is not None and seconds > 0 else DEFAULT_LIFETIME_S
