"""Renders the templates of the pages. Jinja2 is imported at the first page."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from sandbox_sim.operations import Operation
from sandbox_sim.web.routes import CONTROL_PREFIX, HTML

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.runtime import Context
    from markupsafe import Markup

# Pages cut longer texts.
_MAX_TEXT: Final = 10_000
# Once a page has this many characters of texts, it cuts every text at the second figure.
_MAX_PAGE_TEXT: Final = 100_000
_MAX_TEXT_WHEN_FULL: Final = 100
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


@dataclass(eq=False, repr=False)
class Templates:
    """Renders templates, with every value escaped, and adds the headers of every page.

    base_path: the setting; the addresses of a page outside `/_sandbox/` begin with it.
    navigation: returns the values for the links to all views.
    framed_by: the hosts of other sites that may show these pages in frames.
    """

    base_path: str
    navigation: Callable[[], Mapping[str, Any]]
    framed_by: Iterable[str]

    def __post_init__(self) -> None:
        self._frames = " ".join(host for host in self.framed_by if "[" not in host) or "'none'"

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

        context: `full_text_path` in it is the path of the control API with the full texts.
        form_action: where forms may go, for the Content-Security-Policy.
        """
        environment = await asyncio.to_thread(_load_environment)
        template = environment.get_template(name)
        cut = _TextCutter(context.get("full_text_path") or CONTROL_PREFIX)
        text = template.render({**self.navigation(), **context}, root=self._root(request), cut=cut)
        policy = {
            "Content-Security-Policy": _POLICY.format(form_action=form_action, frames=self._frames)
        }
        # Characters that UTF-8 cannot encode, such as half of an emoji, are shown as `\ud83d`.
        body = text.encode("utf-8", "backslashreplace")
        return web.Response(
            body=body, content_type=HTML, charset="utf-8", status=status,
            headers={**_HEADERS, **policy},
        )  # fmt: skip

    def render_part(self, name: str, context: Mapping[str, Any]) -> "Markup":
        """A part of a page from a template of its own, in full. Call it in a thread."""
        from markupsafe import Markup  # noqa: PLC0415 -- serve starts faster without it

        template = _load_environment().get_template(name)
        return Markup(template.render(context, cut=lambda value: value))  # noqa: S704 -- escaped

    async def message(
        self, request: web.BaseRequest, title: str, sentence: str, *, status: int
    ) -> web.Response:
        """A page with one sentence, and links to other pages."""
        context = {"title": title, "sentence": sentence}
        return await self.page(request, "message.html", context, status=status)

    def _root(self, request: web.BaseRequest) -> str:
        """The relative address of `/_sandbox`, which works behind a proxy that removes a prefix."""
        prefix, found, _ = request.path.partition(CONTROL_PREFIX + "/")
        if not found:
            prefix = self.base_path if request.path.startswith(f"{self.base_path}/") else ""
        up = "../" * (request.path.count("/") - 1) or "./"
        return up + (prefix + CONTROL_PREFIX).lstrip("/")


class _TextCutter:
    """Cuts the long texts of one page. full_text_path: the path with the full texts."""

    def __init__(self, full_text_path: str) -> None:
        self._full_text_path = full_text_path
        self._remaining = _MAX_PAGE_TEXT

    def __call__(self, value: Any) -> Any:
        """The value; a long text is cut, and says where the full text is."""
        if type(value) is not str:  # Markup was cut before
            return value
        limit = _MAX_TEXT if self._remaining > 0 else _MAX_TEXT_WHEN_FULL
        self._remaining -= min(len(value), limit)
        if len(value) <= limit:
            return value
        if limit == _MAX_TEXT_WHEN_FULL:
            return value[:limit] + "…"
        note = f"{len(value) - limit:,} more characters"
        return f"{value[:limit]}… ({note}; GET {self._full_text_path} has the full text)"


@cache
def _load_environment() -> "Environment":
    """The compiled templates, shared by all servers of the process."""
    from jinja2 import (  # noqa: PLC0415 -- serve starts faster without it
        Environment,
        FileSystemLoader,
        StrictUndefined,
        pass_context,
    )

    from sandbox_sim.web.pages.formats import FILTERS  # noqa: PLC0415
    from sandbox_sim.web.pages.rule_words import RULE_FILTERS  # noqa: PLC0415

    @pass_context
    def cut(context: "Context", value: Any) -> Any:
        return context["cut"](value)

    environment = Environment(
        finalize=cut,
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update({**FILTERS, **RULE_FILTERS})
    environment.globals["operations"] = [each.value for each in Operation]
    for name in environment.list_templates():
        environment.get_template(name)  # compile now: this runs in a thread
    return environment
