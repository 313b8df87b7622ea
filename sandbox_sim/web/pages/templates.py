"""Renders the templates of the pages. Jinja2 is imported when the first page is asked for."""

import asyncio
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from sandbox_sim.web.pages.texts import Texts
from sandbox_sim.web.routes import CONTROL_PREFIX, HTML

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER: Final = Path(__file__).with_name("templates")
# Pages load only our own files, and their forms go only to us.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action {form_action}; frame-ancestors {frames}; base-uri 'none'"
)
# With `no-referrer`, browsers would send forms with `Origin: null`.
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


class Templates:
    """The templates, with every value escaped, and the headers that every page has.

    base_path: the setting; the addresses of a page outside `/_sandbox/` begin with it.
    framed_by: the hosts of other sites that may show our pages in frames.
    text: every text that the pages show; in a template it is a function of the same name.
    """

    def __init__(
        self, base_path: str, framed_by: Iterable[str] = (), text: Texts | None = None
    ) -> None:
        self._base_path = base_path
        self._frames = " ".join(host for host in framed_by if "[" not in host) or "'none'"
        self.text = text or Texts()

    async def page(
        self,
        request: web.BaseRequest,
        name: str,
        context: Mapping[str, Any],
        *,
        status: int = 200,
        form_action: str = "'self'",
    ) -> web.Response:
        """A page from a template; `root` in it is the relative address of `/_sandbox`.

        form_action: where forms may go, as the Content-Security-Policy spells it.
        """
        environment = await asyncio.to_thread(_load_environment)
        template = environment.get_template(name)
        text = template.render(context, root=self._root(request), text=self.text.markup)
        policy = {
            "Content-Security-Policy": _POLICY.format(form_action=form_action, frames=self._frames)
        }
        return web.Response(
            text=text, content_type=HTML, status=status, headers={**_HEADERS, **policy}
        )

    async def message(
        self, request: web.BaseRequest, title: str, sentence: str, *, status: int
    ) -> web.Response:
        """A page with one sentence, and links to the pages that there are."""
        context = {"title": title, "sentence": sentence}
        return await self.page(request, "message.html", context, status=status)

    def _root(self, request: web.BaseRequest) -> str:
        """A relative address, so that it holds behind a proxy that takes a prefix off."""
        prefix, found, _ = request.path.partition(CONTROL_PREFIX + "/")
        if not found:
            prefix = self._base_path if request.path.startswith(f"{self._base_path}/") else ""
        up = "../" * (request.path.count("/") - 1) or "./"
        return up + (prefix + CONTROL_PREFIX).lstrip("/")


@cache
def _load_environment() -> "Environment":
    """The compiled templates, which all servers of the process share."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 -- see above

    from sandbox_sim.web.pages.formats import FILTERS  # noqa: PLC0415

    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(FILTERS)
    for name in environment.list_templates():
        environment.get_template(name)  # compile now: this runs in a thread
    return environment
