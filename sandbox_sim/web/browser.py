"""Whether a request comes from a person with a browser, who gets a page."""

from typing import Final

from aiohttp import hdrs, web

_READING: Final = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})


def wants_page(request: web.BaseRequest) -> bool:
    """Whether to answer with a page: a GET or HEAD whose `Accept` names `text/html`."""
    return request.method in _READING and "text/html" in request.headers.get(hdrs.ACCEPT, "")
