"""The login page: it takes the control token once and gives the browser a cookie."""

import hmac
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Final, NotRequired, TypedDict

from aiohttp import hdrs, web

from sandbox_sim.web.control.access import SESSION_COOKIE, session_of
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import CONTROL_PREFIX, HTML, Access, Answer, Body, Route

_LOGIN: Final = f"{CONTROL_PREFIX}/login"
_FORM: Final = "application/x-www-form-urlencoded"


class LoginForm(TypedDict):
    """The form of the page."""

    token: str
    next: NotRequired[Annotated[str, "the path of the page that was asked for"]]


class LoginRoutes:
    """Login and logout. token: the setting `control_token`; None where none is needed."""

    def __init__(self, token: str | None, templates: Templates) -> None:
        self._token = token
        self._templates = templates

    def routes(self) -> Sequence[Route]:
        """The routes of the login page."""
        route = partial(Route, group="Pages")
        onwards = Answer(None, 303, None, "logged in; the browser goes on")
        page = Answer(None, media_type=HTML, when="the page")
        return [
            route(
                "GET", _LOGIN, self.view, "show the login page",
                answers=(page, Answer(None, 303, None, "no token is set: go on")),
                access=Access.OPEN,
            ),
            route(
                "POST", _LOGIN, self.login, "log in with the control token",
                answers=(onwards, Answer(None, 401, HTML, "the token is wrong")),
                body=Body(LoginForm, media_type=_FORM), access=Access.OWN_PAGE,
            ),
            route(
                "POST", f"{CONTROL_PREFIX}/logout", self.logout, "log out",
                answers=(Answer(None, 303, None, "logged out"),),
                body=Body(None, optional=True, media_type=_FORM), access=Access.OWN_PAGE,
            ),
        ]  # fmt: skip

    async def view(self, request: web.Request) -> web.Response:
        """Show the form; where no token is set, go to the dashboard."""
        wanted = _own_path(request, request.query.get("next", ""))
        if self._token is None:
            return _go(wanted)
        return await self._form(request, wanted, problem=None, status=200)

    async def login(self, request: web.Request) -> web.Response:
        """Check the token and set the cookie."""
        form: Mapping[str, object] = {}
        with suppress(ValueError):  # a body that is no form
            form = await request.post()
        wanted = _own_path(request, str(form.get("next", "")))
        given = str(form.get("token", "")).strip().encode("utf-8", "surrogateescape")
        if self._token is None:
            return _go(wanted)
        if not hmac.compare_digest(given, self._token.encode()):
            problem = self._templates.text("login.wrong")
            return await self._form(request, wanted, problem=problem, status=401)
        answer = _go(wanted)
        answer.set_cookie(
            SESSION_COOKIE,
            session_of(self._token),
            path=_prefix(request) + CONTROL_PREFIX,
            httponly=True,
            samesite="Strict",
            secure=request.secure,
        )
        return answer

    async def logout(self, request: web.Request) -> web.Response:
        """Delete the cookie."""
        answer = _go(f"{_prefix(request)}{_LOGIN}")
        answer.del_cookie(SESSION_COOKIE, path=_prefix(request) + CONTROL_PREFIX)
        return answer

    async def _form(
        self, request: web.Request, wanted: str, *, problem: str | None, status: int
    ) -> web.Response:
        context = {"next": wanted, "problem": problem}
        return await self._templates.page(request, "login.html", context, status=status)


def _prefix(request: web.Request) -> str:
    return request.path.partition(CONTROL_PREFIX)[0]


def _own_path(request: web.Request, wanted: str) -> str:
    """The path to go on to, if it is one of ours; else the dashboard.

    So a link to the login page cannot lead to another site.
    """
    ours = f"{_prefix(request)}{CONTROL_PREFIX}/"
    safe = wanted.startswith(ours) and wanted.isprintable() and "\\" not in wanted
    return wanted if safe else ours


def _go(location: str) -> web.Response:
    headers = {hdrs.LOCATION: location, hdrs.CACHE_CONTROL: "no-store"}
    return web.Response(status=303, headers=headers)
