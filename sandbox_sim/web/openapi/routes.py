"""`GET /_sandbox/openapi.json`, and the same as a page at `GET /_sandbox/docs`.

The document is made at the first request, in a thread: it takes a quarter of a second, and payments
continue meanwhile.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from sandbox_sim import __version__
from sandbox_sim.web.pages.dashboard import samples_json
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import HTML, Access, Answer, Route, RouteGroup, route
from sandbox_sim.web.transport.requests import PublicAddress

if TYPE_CHECKING:
    from markupsafe import Markup

    from sandbox_sim.web.openapi.document import Schema


class ServerFacts(NamedTuple):
    """The settings that the document depends on.

    reject_status: the HTTP status of the sandbox codes (D7). needs_token: `control_token` is set.
    """

    base_path: str = ""
    reject_status: int = 200
    needs_token: bool = False


@dataclass(eq=False, repr=False)
class OpenapiRoutes(RouteGroup):
    """The document and its page. all_routes: of the server. facts: at present."""

    all_routes: Callable[[], Sequence[Route]]
    facts: Callable[[], ServerFacts]
    templates: Templates
    public_address: PublicAddress

    def __post_init__(self) -> None:
        self._document = lru_cache(maxsize=1)(self._make_document)
        self._page = lru_cache(maxsize=1)(self._make_page)

    group = "Description"

    @route("GET /_sandbox/openapi.json", "describe the gateway and the control API in OpenAPI 3.1",
           answers=(Answer(dict[str, object]),))  # fmt: skip
    async def document(self, _request: web.Request) -> "Schema":
        """The document as JSON."""
        return await asyncio.to_thread(self._document, self.facts())

    @route("GET /_sandbox/docs", "show the description as a page",
           answers=(Answer(None, media_type=HTML),
                    Answer(None, 303, None, "a browser that must log in first")),
           access=Access.PAGE)  # fmt: skip
    async def page(self, request: web.Request) -> web.Response:
        """The document as a page, which can send the requests."""
        content = await asyncio.to_thread(self._page, self.facts())
        samples = samples_json(self.public_address(request))
        context = {"content": content, "version": __version__, "samples": samples}
        return await self.templates.page(request, "docs.html", context)

    def _make_document(self, facts: ServerFacts) -> "Schema":
        from sandbox_sim.web.openapi.document import openapi_document  # noqa: PLC0415 -- when asked

        return openapi_document(self.all_routes(), facts)

    def _make_page(self, facts: ServerFacts) -> "Markup":
        from sandbox_sim.web.openapi.page import template_context  # noqa: PLC0415 -- when asked

        return self.templates.render_part("reference.html", template_context(self._document(facts)))
