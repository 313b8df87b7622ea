"""The style sheet, the icon and the scripts of the pages, under `/_sandbox/static/`."""

import asyncio
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

from aiohttp import web

from sandbox_sim.web.pages.texts import Texts
from sandbox_sim.web.routes import Access, Answer, Route

_FOLDER: Final = Path(__file__).with_name("static")
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}
ICON: Final = "icon.svg"
# A module with the texts of the scripts; it is made, and no file.
_TEXTS: Final = "texts.js"


class StaticRoutes:
    """The files that pages load; they hold nothing secret and need no token."""

    def __init__(self, text: Texts) -> None:
        self._text = text
        self._read = cache(self._read_file)

    def routes(self) -> Sequence[Route]:
        """One route for each file."""
        route = partial(Route, group="Pages", access=Access.OPEN)
        return [
            route(
                "GET", f"/_sandbox/static/{name}", partial(self._serve, name),
                f"load {name} of the pages",
                answers=(Answer(None, media_type=_type_of(name)),),
            )
            for name in sorted([_TEXTS, *(file.name for file in _FOLDER.iterdir())])
            if Path(name).suffix in _TYPES
        ]  # fmt: skip

    async def icon(self, _request: web.BaseRequest) -> web.Response:
        """The icon, which browsers ask for at `/favicon.ico`."""
        return await self._file(ICON)

    async def _serve(self, name: str, _request: web.Request) -> web.Response:
        return await self._file(name)

    async def _file(self, name: str) -> web.Response:
        body = await asyncio.to_thread(self._read, name)
        return web.Response(
            body=body, content_type=_type_of(name), charset="utf-8", headers=_HEADERS
        )

    def _read_file(self, name: str) -> bytes:
        if name == _TEXTS:
            return f"export default {self._text.of_scripts()};\n".encode()
        return (_FOLDER / name).read_bytes()


def _type_of(name: str) -> str:
    return _TYPES[Path(name).suffix]
