"""The page at `/_sandbox/`: what this server is, and where everything else is."""

from collections.abc import Sequence
from functools import partial

from aiohttp import web

from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import CONTROL_PREFIX, HTML, Access, Answer, Route


class DashboardRoutes:
    """The first page."""

    def __init__(self, templates: Templates) -> None:
        self._templates = templates

    def routes(self) -> Sequence[Route]:
        """The routes of the page."""
        route = partial(
            Route, path=f"{CONTROL_PREFIX}/", group="Pages", access=Access.PAGE,
            answers=(
                Answer(None, media_type=HTML, when="the page"),
                Answer(None, 303, None, "the browser has to log in"),
            ),
        )  # fmt: skip
        return [
            route("GET", handler=self.view, summary="show the dashboard"),
            route("HEAD", handler=self.view, summary="look whether there is a dashboard"),
        ]

    async def view(self, request: web.Request) -> web.Response:
        """Show the page."""
        return await self._templates.page(request, "dashboard.html", {})
