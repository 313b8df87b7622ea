"""The files of the pages, the pages of rules and of certify, and pages outside the control API.

Source: sandbox.3.

Everything else outside `/_sandbox/` belongs to the dispatcher, and so does every POST.
"""

import asyncio
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final

from aiohttp import hdrs, web

from sandbox_sim import explanations
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import (
    CONTROL_PREFIX,
    HTML,
    PAGE,
    Access,
    Answer,
    Route,
    RouteGroup,
    route,
)
from sandbox_sim.web.transport.requests import ICON_PATH

_STATIC_FOLDER: Final = Path(__file__).with_name("static")

_MEDIA_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}

# The report of certify contains its style and loads nothing.
_REPORT_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
}

ICON: Final = "icon.svg"


@dataclass(frozen=True, eq=False)
class StaticRoutes(RouteGroup):
    """The files that pages load and the page of the rules, without a token, and the last report.

    report_file: returns where a run of certify on this machine writes its report.
    """

    templates: Templates
    report_file: Callable[[], Path]

    group = "Pages"
    access = Access.OPEN

    def routes(self) -> list[Route]:
        """The pages, and one route for each file."""
        return super().routes() + [
            Route(
                "GET", f"/_sandbox/static/{name}", partial(self._file, name),
                f"load {name} of the pages", self.group,
                (Answer(None, media_type=_media_type(name)),), self.access,
            )
            for name in _file_names()
        ]  # fmt: skip

    @route(f"GET {CONTROL_PREFIX}/rules", "show the rules that answers name", answers=(PAGE,))
    async def rules(self, request: web.Request) -> web.Response:
        """Show all rules, under their sections."""
        context = {"rules": explanations.rules(), "markers": explanations.markers()}
        return await self.templates.page(request, "rules.html", context)

    @route(f"GET {CONTROL_PREFIX}/certify", "show the last run of certify on this machine",
           access=Access.PAGE,
           answers=(Answer(None, media_type=HTML, when="the report, or how to make one"),
                    Answer(None, 303, None, "the browser must log in first")))  # fmt: skip
    async def report(self, request: web.Request) -> web.Response:
        """Show the report, or how to make one."""
        try:
            body = await asyncio.to_thread(lambda: self.report_file().read_bytes())
        except OSError:
            title = "Certify has not run yet"
            how = (
                "sandbox-sim certify runs the bad days of a payment against your application, on "
                "this machine. Start with `sandbox-sim certify init`; the report of a run is "
                "shown here."
            )
            return await self.templates.message(request, title, how, status=200)
        return web.Response(body=body, content_type=HTML, charset="utf-8", headers=_REPORT_HEADERS)

    async def icon(self, request: web.BaseRequest) -> web.Response:
        """The icon, which browsers ask for at `/favicon.ico`."""
        return await self._file(ICON, request)

    async def _file(self, name: str, _request: web.BaseRequest) -> web.Response:
        body = await asyncio.to_thread(_read_file, name)
        return web.Response(
            body=body, content_type=_media_type(name), charset="utf-8", headers=_HEADERS
        )


@cache
def _file_names() -> Sequence[str]:
    return sorted(file.name for file in _STATIC_FOLDER.iterdir() if file.suffix in _MEDIA_TYPES)


@cache
def _read_file(name: str) -> bytes:
    return (_STATIC_FOLDER / name).read_bytes()


def _media_type(name: str) -> str:
    return _MEDIA_TYPES[Path(name).suffix]


@dataclass(frozen=True, eq=False)
class BrowserPages:
    """Answers browsers on paths that are not of the control API.

    base_path: empty, or begins with a slash. paths: those of the interface.
    """

    base_path: str
    paths: Container[str]
    templates: Templates
    files: StaticRoutes

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a request of `is_for_browser_pages`."""
        path = request.path
        if path == ICON_PATH:
            return await self.files.icon(request)
        prefix = self.base_path if path.startswith(self.base_path) else ""
        if path.removeprefix(prefix) in {"", "/", CONTROL_PREFIX}:
            location = {hdrs.LOCATION: f"{prefix}{CONTROL_PREFIX}/"}
            return web.Response(status=303, headers=location)
        if path in self.paths:
            status, title = 405, "This path takes POST"
            why = (
                f"{path} is an operation of the gateway: programs send it a POST with JSON and "
                "credentials. The dashboard can send one for you."
            )
        else:
            status, title = 404, "No such page"
            why = f"The gateway has no path {redact_text(path)}."
        answer = await self.templates.message(request, title, why, status=status)
        if status == 405:
            answer.headers[hdrs.ALLOW] = hdrs.METH_POST
        return answer
