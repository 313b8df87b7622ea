"""The report of the last run of `sandbox-sim certify` on this machine, as a page."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web

from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import CONTROL_PREFIX, HTML, Access, Answer, Route

# The page contains its style and loads nothing.
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, eq=False)
class CertifyReportRoutes:
    """The route of the report. file: returns where a run of certify writes it."""

    file: Callable[[], Path]
    templates: Templates

    def routes(self) -> Sequence[Route]:
        """The one route."""
        return [
            Route(
                "GET", f"{CONTROL_PREFIX}/certify", self.report,
                "show the last run of certify on this machine",
                group="Pages", access=Access.PAGE,
                answers=(
                    Answer(None, media_type=HTML, when="the report, or how to make one"),
                    Answer(None, 303, None, "the browser must log in first"),
                ),
            )
        ]  # fmt: skip

    async def report(self, request: web.Request) -> web.Response:
        """Show the report, or how to make one."""
        try:
            body = await asyncio.to_thread(lambda: self.file().read_bytes())
        except OSError:
            title = "Certify has not run yet"
            how = (
                "sandbox-sim certify runs the bad days of a payment against your application, on "
                "this machine. Start with `sandbox-sim certify init`; the report of a run is "
                "shown here."
            )
            return await self.templates.message(request, title, how, status=200)
        return web.Response(body=body, content_type=HTML, charset="utf-8", headers=_HEADERS)
