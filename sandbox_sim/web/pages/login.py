"""The login page: the user enters the control token once, and the browser gets a cookie.

The link of an invitation, as `sandbox-sim demo --lan` shows one, also logs in.
"""

import hmac
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Final, NotRequired, TypedDict

from aiohttp import web
from pydantic import Field

from sandbox_sim.web.control.access import (
    SESSION_COOKIE,
    challenge,
    prefix_of,
    redirect,
    session_cookie_value,
    set_cookie,
)
from sandbox_sim.web.control.input import Input, form_of
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import (
    CONTROL_PREFIX,
    FORM,
    HTML,
    PAGE,
    Access,
    Answer,
    Body,
    RouteGroup,
    route,
)

_LOGIN: Final = f"{CONTROL_PREFIX}/login"
_INVITATION: Final = f"{CONTROL_PREFIX}/enter"
_LOGGED_IN: Final = Answer(None, 303, None, "logged in; the browser continues")


class Invitations:
    """Links that log a browser in, as often as they are opened, while this process runs."""

    def __init__(self) -> None:
        self._targets: dict[str, str] = {}

    def add(self, code: str, target: str) -> str:
        """Add a code; returns the path of its link. target: where the browser goes after login."""
        self._targets[code] = target
        return f"{_INVITATION}?code={code}"

    def target(self, code: str) -> str | None:
        """Where the browser goes with this code; None if the code is unknown."""
        return self._targets.get(code)


class InvitationQuery(Input):
    """The query of the link of an invitation."""

    code: str = Field("", max_length=200, description="the code of the link")


class LoginForm(TypedDict):
    """The form of the page."""

    token: Annotated[str, "the control token"]
    next: NotRequired[Annotated[str, "the path of the page that was asked for"]]


@dataclass(frozen=True, eq=False)
class LoginRoutes(RouteGroup):
    """Login and logout.

    token: the setting `control_token`, or None. secured: whether browsers reach this server by
    HTTPS.
    """

    token: str | None
    templates: Templates
    invitations: Invitations
    _: KW_ONLY
    secured: bool

    group = "Pages"

    @route(f"GET {_LOGIN}", "show the login page",
           answers=(PAGE, Answer(None, 303, None, "no token is set: continue")),
           access=Access.OPEN)  # fmt: skip
    async def view(self, request: web.Request) -> web.Response:
        """Show the form; without a token, redirect to the dashboard."""
        next_path = _safe_path(request, request.query.get("next", ""))
        if self.token is None:
            return redirect(next_path)
        return await self._login_form(request, next_path, problem=None, status=200)

    @route(f"POST {_LOGIN}", "log in with the control token",
           answers=(_LOGGED_IN, Answer(None, 401, HTML, "the token is wrong")),
           body=Body(LoginForm, media_type=FORM), access=Access.SAME_SITE)  # fmt: skip
    async def login(self, request: web.Request) -> web.Response:
        """Check the token and set the cookie."""
        form = await form_of(request)
        next_path = _safe_path(request, form.get("next", ""))
        given = form.get("token", "").strip().encode()
        if self.token is None:
            return redirect(next_path)
        if not hmac.compare_digest(given, self.token.encode()):
            problem = "This is not the control token. It is the value of the setting control_token."
            page = await self._login_form(request, next_path, problem=problem, status=401)
            return challenge(page)
        return self._logged_in(request, self.token, next_path)

    @route(f"GET {_INVITATION}", "log in with the link of an invitation",
           answers=(_LOGGED_IN, Answer(None, 404, HTML, "no invitation has this code")),
           access=Access.OPEN)  # fmt: skip
    async def enter(self, request: web.Request, query: InvitationQuery) -> web.Response:
        """Log in by an invitation."""
        target = self.invitations.target(query.code)
        if target is None:
            why = "It was valid until the server that made it stopped."
            return await self.templates.message(request, "This link does not work", why, status=404)
        return (
            redirect(target) if self.token is None else self._logged_in(request, self.token, target)
        )

    def _logged_in(self, request: web.Request, token: str, next_path: str) -> web.Response:
        cookie = SESSION_COOKIE, session_cookie_value(token)
        path = prefix_of(request) + CONTROL_PREFIX
        return set_cookie(redirect(next_path), cookie, path, secured=self.secured)

    @route(f"POST {CONTROL_PREFIX}/logout", "log out",
           answers=(Answer(None, 303, None, "logged out"),),
           body=Body(None, optional=True, media_type=FORM), access=Access.SAME_SITE)  # fmt: skip
    async def logout(self, request: web.Request) -> web.Response:
        """Delete the cookie."""
        answer = redirect(f"{prefix_of(request)}{_LOGIN}")
        answer.del_cookie(SESSION_COOKIE, path=prefix_of(request) + CONTROL_PREFIX)
        return answer

    async def _login_form(
        self, request: web.Request, next_path: str, *, problem: str | None, status: int
    ) -> web.Response:
        context = {"next": next_path, "problem": problem}
        return await self.templates.page(request, "login.html", context, status=status)


def _safe_path(request: web.Request, next_path: str) -> str:
    """The path if it is below `/_sandbox/`, else the dashboard.

    So a link to the login page cannot redirect to another site.
    """
    dashboard = f"{prefix_of(request)}{CONTROL_PREFIX}/"
    is_plain = next_path.isprintable() and "\\" not in next_path
    return next_path if next_path.startswith(dashboard) and is_plain else dashboard
