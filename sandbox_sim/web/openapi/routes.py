"""`GET /_sandbox/openapi.json`, and the same as a page at `GET /_sandbox/docs`.

The document is made when it is first asked for, in a thread: it takes a quarter of a second, and
payments go on meanwhile.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import web

from sandbox_sim.web.routes import HTML, Answer, Route

if TYPE_CHECKING:
    from sandbox_sim.web.openapi.json_schema import Schema

_STYLE: Final = Path(__file__).with_name("docs.css")
# The page has no script and no form, and loads nothing but its style sheet.
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'none'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class ServerFacts(NamedTuple):
    """The settings that the document depends on.

    reject_status: the HTTP status of the sandbox codes (D7). needs_token: `control_token` is set.
    """

    base_path: str = ""
    reject_status: int = 200
    needs_token: bool = False


class OpenapiRoutes:
    """The document and its page. table: returns all routes of the server. facts: at present."""

    def __init__(
        self, table: Callable[[], Sequence[Route]], facts: Callable[[], ServerFacts]
    ) -> None:
        self._table = table
        self._facts = facts
        self._document = lru_cache(maxsize=1)(self._make_document)
        self._page = lru_cache(maxsize=1)(self._make_page)

    def routes(self) -> Sequence[Route]:
        """The routes of the description."""
        route = partial(Route, group="Description")
        return [
            route(
                "GET", "/_sandbox/openapi.json", self.document,
                "describe the gateway and the control API in OpenAPI 3.1",
                answers=(Answer(dict[str, object]),),
            ),
            route(
                "GET", "/_sandbox/docs", self.page, "show the description as a page",
                answers=(Answer(None, media_type=HTML),),
            ),
            route(
                "GET", "/_sandbox/docs/style.css", self.style, "the style sheet of the page",
                answers=(Answer(None, media_type="text/css"),),
            ),
        ]  # fmt: skip

    async def document(self, _request: web.Request) -> "Schema":
        """The document as JSON."""
        return await asyncio.to_thread(self._document, self._facts())

    async def page(self, _request: web.Request) -> web.Response:
        """The page, which works without scripts and without a network."""
        text = await asyncio.to_thread(self._page, self._facts())
        return web.Response(text=text, content_type=HTML, headers=_HEADERS)

    async def style(self, _request: web.Request) -> web.Response:
        """The style sheet of the page."""
        text = await asyncio.to_thread(_STYLE.read_text, "utf-8")
        return web.Response(text=text, content_type="text/css", headers=_HEADERS)

    def _make_document(self, facts: ServerFacts) -> "Schema":
        from sandbox_sim.web.openapi.document import openapi_document  # noqa: PLC0415 -- when asked

        return openapi_document(self._table(), facts)

    def _make_page(self, facts: ServerFacts) -> str:
        from sandbox_sim.web.openapi.page import page_of  # noqa: PLC0415 -- when asked

        return page_of(self._document(facts))
