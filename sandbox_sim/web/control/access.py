"""Who may use the control API: the headers Host and Origin, and the control token.

A program sends the token in each request. A browser sends it once, in the form of the login page,
and then a cookie that is made from it.
"""

import hashlib
import hmac
from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from typing import Final
from urllib.parse import quote

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from sandbox_sim.domain.hosts import (
    Host,
    is_loopback,
    normalized_host,
    parse_host_header,
    parse_origin_header,
)
from sandbox_sim.web.control.errors import (
    HOST_NOT_ALLOWED,
    ORIGIN_NOT_ALLOWED,
    UNAUTHORIZED,
    error_response,
)
from sandbox_sim.web.routes import CONTROL_PREFIX, Access

SESSION_COOKIE: Final = "sandbox_sim_session"
_HANDSET_COOKIE: Final = "sandbox_sim_handset"
# They change nothing, so a link or an image on another site may send them.
_SAFE_METHODS: Final = frozenset({hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS})


class Hosts:
    """Refuses what a page of another site makes the browser of its visitor send.

    Such a page cannot choose the headers `Host`, `Origin` and `Sec-Fetch-Site`.

    - `Host`: the page can give this machine a name of its own (DNS rebinding) and then read our
      answers. So `Host` must be a name of ours: a loopback name, the address that the request came
      in by, the setting `host`, or a listed one.
    - `Origin`: the page can send forms from its own address. So `Origin` must be that `Host`, or
      listed. Programs send neither `Origin` nor `Sec-Fetch-Site`.

    No Content-Type is required: browsers send `Origin` with every POST, and `curl -d` sends the
    Content-Type of a form. There are no CORS headers, so only our own pages can read an answer.

    listed: the setting `allowed_hosts`, and the host of `public_url`.
    """

    def __init__(self, host: str, listed: Iterable[Host]) -> None:
        self._host = normalized_host(host)
        self._listed = tuple(listed)

    def refuse_host(self, request: web.Request) -> web.Response | None:
        """Answer HTTP 403 to a request whose `Host` is no name of ours; None for any other."""
        host = parse_host_header(request.headers.get(hdrs.HOST, ""))
        if host is None:
            why = "The header Host has to be there and name the host that is asked"
            return error_response(HOST_NOT_ALLOWED, why)
        if self._is_ours(host.name, request) or self._is_listed(host):
            return None
        why = f"The header Host says {host}, which is no name of this server that it knows of"
        hint = f"if it is one, add {host.name} to the setting allowed_hosts"
        return error_response(HOST_NOT_ALLOWED, f"{why}; {hint}")

    def refuse_page(
        self, request: web.Request, safe_methods: Container[str] = _SAFE_METHODS
    ) -> web.Response | None:
        """Answer HTTP 403 to a request that a page of another site sent; None for any other.

        safe_methods: those that change nothing here, so a link on another site may send them.
        """
        given = request.headers.get(hdrs.ORIGIN)
        if given is None:
            crosses = request.headers.get("Sec-Fetch-Site", "").lower() == "cross-site"
            if not crosses or request.method in safe_methods:
                return None
            why = "A page of another site may not use this server"
            return error_response(
                ORIGIN_NOT_ALLOWED, f"{why}; the setting allowed_hosts lists more"
            )
        origin = parse_origin_header(given)
        if origin is None:
            why = "The header Origin has to name the site of the page, with http or https"
            return error_response(ORIGIN_NOT_ALLOWED, why)
        if origin == parse_host_header(request.headers.get(hdrs.HOST, "")) or self._is_listed(
            origin
        ):
            return None
        why = f"A page of {origin} may not use this server"
        hint = f"if it may, add {origin} to the setting allowed_hosts"
        return error_response(ORIGIN_NOT_ALLOWED, f"{why}; {hint}")

    def _is_ours(self, name: str, request: web.Request) -> bool:
        return is_loopback(name) or name in {self._host, _local_address(request)}

    def _is_listed(self, host: Host) -> bool:
        return any(host.matches(pattern) for pattern in self._listed)


def _local_address(request: web.Request) -> str | None:
    """The address of ours that the connection was made to."""
    transport = request.transport
    return normalized_host(transport.get_extra_info("sockname")[0]) if transport else None


class Guard:
    """Wraps a handler so that it answers only those who may use its route.

    token: the setting `control_token`; None where no token is needed.
    """

    def __init__(self, token: str | None, hosts: Hosts) -> None:
        self._token = None if token is None else token.encode()
        self._cookies = {} if token is None else {SESSION_COOKIE: session_of(token)}
        self._handset_cookies = self._cookies | dict(
            [] if token is None else [handset_cookie(token)]
        )
        self._hosts = hosts

    def protect(
        self, access: Access, handler: Handler, *, with_handset_cookie: bool = False
    ) -> Handler:
        """The handler with the checks of its access; refusals are HTTP 401 and 403.

        A browser without a session is sent to the login page.
        with_handset_cookie: the cookie of a phone opens a page, too.
        """
        of_page = self._handset_cookies if with_handset_cookie else self._cookies
        checks: dict[Access, Callable[[web.Request], web.Response | None]] = {
            Access.CONTROL: partial(self._refuse_control, cookies=self._cookies),
            Access.HANDSET: partial(self._refuse_control, cookies=self._handset_cookies),
            Access.PAGE: partial(self._refuse_page, cookies=of_page),
            Access.OWN_PAGE: self._hosts.refuse_page,
            # By an image or a link, a page of another site can send a GET too.
            Access.DELIVERY: partial(self._hosts.refuse_page, safe_methods=frozenset()),
        }
        refusal_of = checks.get(access)
        if refusal_of is None:
            return handler

        async def guarded(request: web.Request) -> web.StreamResponse:
            return refusal_of(request) or await handler(request)

        return guarded

    def _refuse_control(
        self, request: web.Request, cookies: Mapping[str, str]
    ) -> web.Response | None:
        return self._refuse_site(request) or self._refuse_token(request, cookies)

    def _refuse_page(self, request: web.Request, cookies: Mapping[str, str]) -> web.Response | None:
        refusal = self._refuse_site(request)
        if refusal is None and self._refuse_token(request, cookies) is not None:
            return _to_login(request)
        return refusal

    def _refuse_site(self, request: web.Request) -> web.Response | None:
        return self._hosts.refuse_host(request) or self._hosts.refuse_page(request)

    def _refuse_token(
        self, request: web.Request, cookies: Mapping[str, str]
    ) -> web.Response | None:
        if self._token is None or _has_cookie(request, cookies):
            return None
        given = request.headers.get(hdrs.AUTHORIZATION, "").encode("utf-8", "surrogateescape")
        scheme, _, token = given.partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(token, self._token):
            return None
        return error_response(UNAUTHORIZED, "Send the header Authorization: Bearer <token>")


def _has_cookie(request: web.Request, cookies: Mapping[str, str]) -> bool:
    """Whether a page of ours sent the request, after a login: it has one of these cookies.

    A browser sends the cookie for every port of the host. So what changes something must also
    name our page in `Origin`, which `refuse_page` has checked.
    """
    if hdrs.COOKIE not in request.headers:
        return False
    from_page = request.method in _SAFE_METHODS or hdrs.ORIGIN in request.headers
    return from_page and any(
        hmac.compare_digest(
            request.cookies.get(name, "").encode("utf-8", "surrogateescape"), value.encode()
        )
        for name, value in cookies.items()
    )


def session_of(token: str) -> str:
    """The value of the session cookie: it shows that the browser was given the token."""
    return hmac.new(token.encode(), b"sandbox_sim session", hashlib.sha256).hexdigest()


def handset_cookie(token: str) -> tuple[str, str]:
    """The name and the value of the cookie of a phone; it is good for the handset pages only."""
    value = hmac.new(token.encode(), b"sandbox_sim handset", hashlib.sha256).hexdigest()
    return _HANDSET_COOKIE, value


def _to_login(request: web.Request) -> web.Response:
    prefix = request.path.partition(CONTROL_PREFIX)[0]
    wanted = quote(request.path_qs, safe="")
    location = f"{prefix}{CONTROL_PREFIX}/login?next={wanted}"
    headers = {hdrs.LOCATION: location, hdrs.CACHE_CONTROL: "no-store"}
    return web.Response(status=303, headers=headers)
