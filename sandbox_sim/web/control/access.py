"""Who may use the control API: the headers Host and Origin, and the control token.

A program sends the token in each request. A browser sends it once, in the form of the login page,
and then a cookie that is made from it.
"""

import hashlib
import hmac
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Final
from urllib.parse import quote

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from sandbox_sim.web.api.authentication import SAFE_METHODS, AllowedHosts
from sandbox_sim.web.control import errors
from sandbox_sim.web.control.errors import error_response
from sandbox_sim.web.routes import CONTROL_PREFIX, Access

SESSION_COOKIE: Final = "sandbox_sim_session"
_HANDSET_COOKIE: Final = "sandbox_sim_handset"


class Guard:
    """Wraps handlers with the checks of their access.

    token: the setting `control_token`; None if no token is needed.
    """

    def __init__(self, token: str | None, hosts: AllowedHosts) -> None:
        self._token = None if token is None else token.encode()
        self._cookies = {} if token is None else {SESSION_COOKIE: session_cookie_value(token)}
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
        page_cookies = self._handset_cookies if with_handset_cookie else self._cookies
        checks: dict[Access, Callable[[web.Request], web.Response | None]] = {
            Access.CONTROL: partial(self._refuse_control, cookies=self._cookies),
            Access.HANDSET: partial(self._refuse_control, cookies=self._handset_cookies),
            Access.PAGE: partial(self._refuse_page, cookies=page_cookies),
            Access.SAME_SITE: self._refuse_other_page,
            # A page of another site can also send a GET, by an image or a link.
            Access.DELIVERY: partial(self._refuse_other_page, safe_methods=frozenset()),
        }
        check = checks.get(access)
        if check is None:
            return handler

        async def guarded(request: web.Request) -> web.StreamResponse:
            return check(request) or await handler(request)

        return guarded

    def _refuse_control(
        self, request: web.Request, cookies: Mapping[str, str]
    ) -> web.Response | None:
        return self._refuse_site(request) or self._refuse_token(request, cookies)

    def _refuse_page(self, request: web.Request, cookies: Mapping[str, str]) -> web.Response | None:
        refusal = self._refuse_site(request)
        if refusal is None and self._refuse_token(request, cookies) is not None:
            return _redirect_to_login(request)
        return refusal

    def _refuse_site(self, request: web.Request) -> web.Response | None:
        transport = request.transport
        local_address = transport.get_extra_info("sockname")[0] if transport else None
        problem = self._hosts.problem_of_host(request.headers, local_address)
        if problem is not None:
            return error_response(errors.HOST_NOT_ALLOWED, problem)
        return self._refuse_other_page(request)

    def _refuse_other_page(
        self, request: web.Request, safe_methods: Container[str] = SAFE_METHODS
    ) -> web.Response | None:
        """Answer HTTP 403 to a request that a page of another site sent; None for any other."""
        problem = self._hosts.problem_of_page(request.headers, request.method, safe_methods)
        return None if problem is None else error_response(errors.ORIGIN_NOT_ALLOWED, problem)

    def _refuse_token(
        self, request: web.Request, cookies: Mapping[str, str]
    ) -> web.Response | None:
        if self._token is None or _has_cookie(request, cookies):
            return None
        given = request.headers.get(hdrs.AUTHORIZATION, "").encode("utf-8", "surrogateescape")
        scheme, _, token = given.partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(token, self._token):
            return None
        message = "Send the header Authorization: Bearer <token>"
        return challenge(error_response(errors.UNAUTHORIZED, message))


def challenge(answer: web.Response) -> web.Response:
    """Add the header that HTTP 401 needs (RFC 9110, 11.6.1).

    Browsers open no dialog for the scheme Bearer.
    """
    answer.headers[hdrs.WWW_AUTHENTICATE] = 'Bearer realm="sandbox_sim"'
    return answer


def _has_cookie(request: web.Request, cookies: Mapping[str, str]) -> bool:
    """Whether one of our pages sent the request after a login: it has one of these cookies.

    A browser sends the cookie for every port of the host. So a request that changes something must
    also have an `Origin`, which `AllowedHosts` has checked.
    """
    if hdrs.COOKIE not in request.headers:
        return False
    from_page = request.method in SAFE_METHODS or hdrs.ORIGIN in request.headers
    return from_page and any(
        hmac.compare_digest(
            request.cookies.get(name, "").encode("utf-8", "surrogateescape"), value.encode()
        )
        for name, value in cookies.items()
    )


def session_cookie_value(token: str) -> str:
    """The value of the session cookie, which proves that its user entered the token."""
    return hmac.new(token.encode(), b"sandbox_sim session", hashlib.sha256).hexdigest()


def handset_cookie(token: str) -> tuple[str, str]:
    """The name and the value of the cookie of a phone, which is valid only for handset pages."""
    value = hmac.new(token.encode(), b"sandbox_sim handset", hashlib.sha256).hexdigest()
    return _HANDSET_COOKIE, value


def prefix_of(request: web.BaseRequest) -> str:
    """The part of the path before `/_sandbox`."""
    return request.path.partition(CONTROL_PREFIX)[0]


def redirect(location: str) -> web.Response:
    """Redirect the browser to another page, temporarily."""
    headers = {hdrs.LOCATION: location, hdrs.CACHE_CONTROL: "no-store"}
    return web.Response(status=303, headers=headers)


def set_cookie(
    answer: web.Response, cookie: tuple[str, str], path: str, *, secured: bool
) -> web.Response:
    """Add a cookie that scripts cannot read and pages of other sites do not send."""
    name, value = cookie
    answer.set_cookie(name, value, path=path, httponly=True, samesite="Strict", secure=secured)
    return answer


def _redirect_to_login(request: web.Request) -> web.Response:
    next_path = quote(request.path_qs, safe="")
    return redirect(f"{prefix_of(request)}{CONTROL_PREFIX}/login?next={next_path}")
