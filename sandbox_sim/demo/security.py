"""Headers of every answer, and the refusal of forms that another site sends."""

from typing import Final
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from sandbox_sim.demo.settings import CALLBACK_PATH, ShopSettings

_SAFE_METHODS: Final = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})


def security_headers(settings: ShopSettings) -> dict[str, str]:
    """The headers of every answer of the shop.

    After the checkout form the browser goes on to a payment page, and browsers apply `form-action`
    to that redirect too; so the origins of the payment pages stand there.
    """
    pages = " ".join(settings.payment_pages)
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"connect-src 'self'; form-action 'self' {pages}; frame-src 'self' {pages}; "
        "frame-ancestors 'self'; base-uri 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }


def is_foreign(request: web.Request) -> bool:
    """Whether another site has sent this form.

    Callbacks come from a server, which sends no such headers, and have a signature instead.
    """
    if request.method in _SAFE_METHODS or request.path == CALLBACK_PATH:
        return False
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site not in {"same-origin", "none"}:
        return True
    origin = request.headers.get(hdrs.ORIGIN)
    return origin is not None and urlsplit(origin).netloc != request.headers.get(hdrs.HOST)
