"""The style sheet, the icon and the scripts of the pages, under `/_sandbox/static/`."""

import asyncio
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

from aiohttp import web

from sandbox_sim.web.routes import Access, Answer, Route

_FOLDER: Final = Path(__file__).with_name("static")
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}
ICON: Final = "icon.svg"


class StaticRoutes:
    """The files that pages load; they hold nothing secret and need no token."""

    def __init__(self) -> None:
        self._read = cache(_read)

    def routes(self) -> Sequence[Route]:
        """One route for each file."""
        route = partial(Route, group="Pages", access=Access.OPEN)
        return [
            route(
                "GET", f"/_sandbox/static/{file.name}", partial(self._serve, file.name),
                f"load {file.name} of the pages",
                answers=(Answer(None, media_type=_TYPES[file.suffix]),),
            )
            for file in sorted(_FOLDER.iterdir())
            if file.suffix in _TYPES
        ]  # fmt: skip

    async def icon(self, _request: web.BaseRequest) -> web.Response:
        """The icon, which browsers ask for at `/favicon.ico`."""
        return await self._file(ICON)

    async def _serve(self, name: str, _request: web.Request) -> web.Response:
        return await self._file(name)

    async def _file(self, name: str) -> web.Response:
        body = await asyncio.to_thread(self._read, name)
        kind = _TYPES[Path(name).suffix]
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=_HEADERS)


def _read(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()
