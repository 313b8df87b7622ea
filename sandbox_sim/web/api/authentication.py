"""Who may send requests: the names of this server and its pages, credentials, User-Agent and rate.

Source: D42, auth.1 to auth.4, D2, D3, D4, D9, D10.

A page of another site makes the browser of its visitor send requests here. It cannot choose the
headers `Host`, `Origin` and `Sec-Fetch-Site`:

- `Host`: the page can give this machine another name (DNS rebinding) and then read our answers. So
  `Host` must be a name of this server: a loopback name, the address that the request came to, the
  setting `host`, or a listed name.
- `Origin`: the page can send forms from its own address. So `Origin` must be that `Host`, or
  listed. Programs send neither `Origin` nor `Sec-Fetch-Site`.

No Content-Type is required: browsers send `Origin` with every POST, and `curl -d` sends the
Content-Type of a form. There are no CORS headers, so only our own pages can read an answer.
"""

import binascii
import hmac
import math
from collections.abc import Container, Iterable, Mapping
from typing import Final

from aiohttp import hdrs

from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.ports import Clock
from sandbox_sim.values.clients import Client, ServiceMode, basic_credentials
from sandbox_sim.values.hosts import (
    Host,
    is_loopback,
    normalized_host,
    parse_host_header,
    parse_origin_header,
)
from sandbox_sim.values.rate_limit import Bucket, take
from sandbox_sim.values.response_codes import Code, Reply

# They change nothing, so a link or an image on another site may send them.
SAFE_METHODS: Final = frozenset({hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS})

_MAX_ACCEPTED: Final = 64


class AllowedHosts:
    """Checks the headers Host and Origin; each method returns the reason of a refusal, or None.

    host: the setting `host`. listed: the setting `allowed_hosts`, and the host of `public_url`.
    """

    def __init__(self, host: str, listed: Iterable[Host]) -> None:
        self._host = normalized_host(host)
        self._listed = tuple(listed)
        self._on_loopback = is_loopback(self._host)
        # Clients send the same few names with every request, and parsing one takes 10 us.
        self._accepted: set[str] = set()

    def gateway_problem(self, headers: Mapping[str, str]) -> str | None:
        """Why a request to a path of the interface is refused.

        `Host` is checked only if the server listens on loopback: otherwise containers and load
        balancers use many names, and a client needs its keys. Browsers send `Origin` with a POST.
        """
        if self._on_loopback and (given := headers.get(hdrs.HOST, "")) not in self._accepted:
            problem = self._host_problem(given)
            if problem is not None:
                return problem
            if len(self._accepted) < _MAX_ACCEPTED:
                self._accepted.add(given)
        if hdrs.ORIGIN in headers:
            return self.problem_of_page(headers, hdrs.METH_POST)
        return None

    def problem_of_host(self, headers: Mapping[str, str], local_address: str | None) -> str | None:
        """Why `Host` is not a name of this server.

        local_address: the address that the connection was made to; it is a valid name too.
        """
        given = headers.get(hdrs.HOST, "")
        problem = self._host_problem(given)
        if problem is None or local_address is None:
            return problem
        host = parse_host_header(given)
        is_local = host is not None and host.name == normalized_host(local_address)
        return None if is_local else problem

    def problem_of_page(
        self, headers: Mapping[str, str], method: str, safe_methods: Container[str] = SAFE_METHODS
    ) -> str | None:
        """Why the page that sent the request may not use this server; programs always may.

        safe_methods: those that change nothing here, so a link on another site may send them.
        """
        given = headers.get(hdrs.ORIGIN)
        if given is None:
            is_cross_site = headers.get("Sec-Fetch-Site", "").lower() == "cross-site"
            if not is_cross_site or method in safe_methods:
                return None
            why = "A page of another site may not use this server"
            return f"{why}; the setting allowed_hosts lists more"
        origin = parse_origin_header(given)
        if origin is None:
            return "The header Origin must name the site of the page, with http:// or https://"
        if self._is_listed(origin) or origin == parse_host_header(headers.get(hdrs.HOST, "")):
            return None
        hint = f"if it may, add {origin} to the setting allowed_hosts"
        return f"A page of {origin} may not use this server; {hint}"

    def _host_problem(self, header: str) -> str | None:
        host = parse_host_header(header)
        if host is None:
            return "The header Host must be present and name the host of the request"
        if is_loopback(host.name) or host.name == self._host or self._is_listed(host):
            return None
        hint = f"if it is one, add {host.name} to the setting allowed_hosts"
        return f"The header Host says {host}, which is not a known name of this server; {hint}"

    def _is_listed(self, host: Host) -> bool:
        return any(host.matches(pattern) for pattern in self._listed)


class Authentication:
    """Checks requests against the credential sets and the rate limit."""

    def __init__(self, clients: Iterable[Client], clock: Clock, behaviour: BehaviourHolder) -> None:
        self._clients = [(f"{c.client_key}:{c.secret_key}".encode(), c) for c in clients]
        # The usual form of the header, looked up whole: a lookup takes the same time however many
        # of its characters are right.
        self._by_header = {
            f"Basic {basic_credentials(each.client_key, each.secret_key)}": each
            for _, each in self._clients
        }
        self._clock = clock
        self._behaviour = behaviour
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
        limit = self._behaviour.present.rate_limit
        if limit is not None:
            before, now = self._buckets.get(client.client_key), self._clock.monotonic()
            self._buckets[client.client_key], wait = take(before, limit, now)
            if wait:
                seconds = str(math.ceil(wait))
                why = (
                    f"more than {limit.per_minute:g} requests a minute after a burst of "
                    f"{limit.burst} (settings rate_limit_per_minute, rate_limit_burst)"
                )
                return Reply(Code.TOO_MANY_REQUESTS, "D10", why, headers={"Retry-After": seconds})
        return client

    def accepts(self, headers: Mapping[str, str]) -> bool:
        """Whether a request has valid credentials and a User-Agent; does not count it."""
        is_client = self.mode_of(headers) is not None
        return is_client and bool(headers.get(hdrs.USER_AGENT, "").strip())

    def mode_of(self, headers: Mapping[str, str]) -> ServiceMode | None:
        """The mode of the credentials of a request; None if they are unknown."""
        header = headers.get(hdrs.AUTHORIZATION, "")
        client = self._by_header.get(header) or self._authenticate(header)
        return None if isinstance(client, Reply) else client.mode

    def _authenticate(self, header: str) -> Client | Reply:
        if not header:
            return _unauthenticated(
                "the Authorization header is missing: send it with every request, because the "
                "gateway does not ask for it"
            )
        scheme, _, credentials = header.partition(" ")
        if scheme.lower() != "basic":
            return _unauthenticated("the Authorization header is not of the form Basic <base64>")
        try:
            given = binascii.a2b_base64(credentials.strip(), strict_mode=True)
        except (binascii.Error, ValueError):
            return _unauthenticated("the Authorization header is not valid base64")
        found = None
        # Every set is compared, so the time does not reveal which one is similar.
        for pair, client in self._clients:
            if hmac.compare_digest(pair, given):
                found = client
        if found is None:
            why = "the client key is unknown, or the secret key does not belong to it"
            return _unauthenticated(why)
        return found


def service_refusal(client: Client, service_id: int) -> Reply | None:
    """The reply if this client may not use this service (D2) or its mode (D32); else None."""
    if not client.served:
        why = "these are production credentials and the server runs without --production"
        return Reply(Code.FORBIDDEN, "D32", why)
    if not client.may_use(service_id):
        why = f"the credentials are not for service {service_id}"
        return Reply(
            Code.FORBIDDEN, "D2", why, f"You do not have access to service_id {service_id}"
        )
    return None


def _unauthenticated(why: str) -> Reply:
    return Reply(Code.NOT_AUTHENTICATED, "D3", why)
