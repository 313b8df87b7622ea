"""The page of the rules that answers name, each under its own anchor, such as `#sandbox.3`."""

from collections.abc import Sequence

from aiohttp import web

from sandbox_sim import rules
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import CONTROL_PREFIX, HTML, Access, Answer, Route


class RulesRoutes:
    """Shows the rules that answers name; they hold nothing secret and need no token."""

    def __init__(self, templates: Templates) -> None:
        self._templates = templates

    def routes(self) -> Sequence[Route]:
        """The route of the page."""
        return [
            Route(
                "GET", f"{CONTROL_PREFIX}/rules", self.view, "show the rules that answers name",
                "Pages", (Answer(None, media_type=HTML, when="the page"),), access=Access.OPEN,
            ),
        ]  # fmt: skip

    async def view(self, request: web.Request) -> web.Response:
        """Show all rules, under their sections."""
        context = {"rules": rules.rules(), "markers": rules.markers()}
        return await self._templates.page(request, "rules.html", context)
