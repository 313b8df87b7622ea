"""What a browser gets outside `/_sandbox/`: the way to the dashboard, the icon, a page.

Everything else there belongs to the dispatcher, and so does every POST.
"""

from collections.abc import Container
from typing import Final

from aiohttp import hdrs, web

from sandbox_sim.domain.redaction import redact_text
from sandbox_sim.web.browser import wants_page
from sandbox_sim.web.pages.static_files import StaticRoutes
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import CONTROL_PREFIX

_ICON: Final = "/favicon.ico"
_READING: Final = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})


class BrowserPages:
    """Answers browsers on paths that are not of the control API.

    base_path: empty, or begins with a slash. paths: those of the interface.
    """

    def __init__(
        self, base_path: str, paths: Container[str], templates: Templates, files: StaticRoutes
    ) -> None:
        self._base_path = base_path
        self._paths = paths
        self._templates = templates
        self._files = files

    def takes(self, request: web.BaseRequest) -> bool:
        """Whether this answers the request, and not the dispatcher."""
        if request.method not in _READING:
            return False
        return request.path == _ICON or wants_page(request)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a request that it takes."""
        path = request.path
        if path == _ICON:
            return await self._files.icon(request)
        prefix = self._base_path if path.startswith(self._base_path) else ""
        if path.removeprefix(prefix) in {"", "/", CONTROL_PREFIX}:
            location = {hdrs.LOCATION: f"{prefix}{CONTROL_PREFIX}/"}
            return web.Response(status=303, headers=location)
        text = self._templates.text
        if path in self._paths:
            title, why = text("message.takes_post"), text("message.takes_post_why", path=path)
            status = 405
        else:
            title, why = text("message.none"), text("message.none_why", path=redact_text(path))
            status = 404
        answer = await self._templates.message(request, title, why, status=status)
        if status == 405:
            answer.headers[hdrs.ALLOW] = hdrs.METH_POST
        return answer
