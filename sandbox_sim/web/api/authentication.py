"""Authentication of clients: credentials, User-Agent and rate limit, checked in this order.

Source: auth.1 to auth.4, D2, D3, D4, D9, D10.
"""

import binascii
import hmac
import math
from collections.abc import Iterable, Mapping

from aiohttp import hdrs

from sandbox_sim.domain.clients import Client, ServiceMode
from sandbox_sim.domain.rate_limit import Bucket, RateLimit, take
from sandbox_sim.domain.response_codes import Code, Reply
from sandbox_sim.gateway.ports import Clock


class Authentication:
    """Checks requests against the credential sets; `limit` None means that there is no limit."""

    def __init__(self, clients: Iterable[Client], clock: Clock, limit: RateLimit | None) -> None:
        self._clients = [(_pair(c.client_key, c.secret_key), c) for c in clients]
        # The usual form of the header, looked up whole: a lookup takes the same time however many
        # of its characters are right.
        self._by_header = {_basic(pair): client for pair, client in self._clients}
        self._clock = clock
        self._limit = limit
        self._buckets: dict[str, Bucket] = {}

    def admit(self, headers: Mapping[str, str]) -> Client | Reply:
        """The client that sent a request, or the reply that refuses it."""
        header = headers.get(hdrs.AUTHORIZATION, "")
        client = self._by_header.get(header) or self._authenticate(header)
        if isinstance(client, Reply):
            return client
        if not headers.get(hdrs.USER_AGENT, "").strip():
            message = "The User-Agent header is missing or blank; send one that names your software"
            return Reply(Code.FORBIDDEN, "D4", "the User-Agent header is missing or blank", message)
        if self._limit is not None:
            bucket, wait = take(
                self._buckets.get(client.client_key), self._limit, self._clock.monotonic()
            )
            self._buckets[client.client_key] = bucket
            if wait:
                seconds = str(math.ceil(wait))
                limit = f"{self._limit.per_minute:g} requests a minute"
                why = f"more than {limit} (setting rate_limit_per_minute)"
                return Reply(Code.TOO_MANY_REQUESTS, "D10", why, headers={"Retry-After": seconds})
        return client

    def knows(self, headers: Mapping[str, str]) -> bool:
        """Whether a request has credentials and a User-Agent; changes nothing, unlike `admit`."""
        known = self.mode_of(headers) is not None
        return known and bool(headers.get(hdrs.USER_AGENT, "").strip())

    def mode_of(self, headers: Mapping[str, str]) -> ServiceMode | None:
        """The mode of the credentials of a request; None where they are not recognised."""
        header = headers.get(hdrs.AUTHORIZATION, "")
        client = self._by_header.get(header) or self._authenticate(header)
        return None if isinstance(client, Reply) else client.mode

    def _authenticate(self, header: str) -> Client | Reply:
        if not header:
            return _stranger("the Authorization header is missing")
        scheme, _, credentials = header.partition(" ")
        if scheme.lower() != "basic":
            return _stranger("the Authorization header is not of the form Basic <base64>")
        try:
            given = binascii.a2b_base64(credentials.strip(), strict_mode=True)
        except (binascii.Error, ValueError):
            return _stranger("the Authorization header is not valid base64")
        found = None
        # Every set is compared, so the time says nothing about which one came close.
        for pair, client in self._clients:
            if hmac.compare_digest(pair, given):
                found = client
        if found is None:
            return _stranger("the client key is not known, or the secret key is not its own")
        return found


def service_refusal(client: Client, service_id: int) -> Reply | None:
    """The reply where this client may not use this service (D2) or its mode (D32); else None."""
    if not client.served:
        why = "these are production credentials and the server runs without --production"
        return Reply(Code.FORBIDDEN, "D32", why)
    if not client.may_use(service_id):
        why = f"the credentials are not for service {service_id}"
        return Reply(
            Code.FORBIDDEN, "D2", why, f"You do not have access to service_id {service_id}"
        )
    return None


def _pair(client_key: str, secret_key: str) -> bytes:
    return f"{client_key}:{secret_key}".encode()


def _basic(pair: bytes) -> str:
    return f"Basic {binascii.b2a_base64(pair, newline=False).decode()}"


def _stranger(why: str) -> Reply:
    return Reply(Code.NOT_AUTHENTICATED, "D3", why)
