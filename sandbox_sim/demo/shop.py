"""Builds the shop, and queries the status of payments that have no callback."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import aiohttp_jinja2
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from jinja2 import FileSystemLoader, StrictUndefined

from sandbox_sim.demo.catalogue import make_catalogue
from sandbox_sim.demo.checkout import Background, Checkout, SmsNotifier
from sandbox_sim.demo.clock_and_ids import Clock, SystemClock
from sandbox_sim.demo.gateway_client import CALLBACK_PATH, GatewayClient, ShopSettings
from sandbox_sim.demo.orders import OrderBook
from sandbox_sim.demo.pages import Pages, context
from sandbox_sim.demo.texts import ENGLISH

log = logging.getLogger("sandbox_sim.demo")


@dataclass(eq=False, repr=False)
class StatusPoller:
    """Queries the status of transactions when it is due, in a loop."""

    book: OrderBook
    checkout: Checkout
    clock: Clock
    interval_s: float = 1.0

    def __post_init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def query_due(self, now: datetime) -> int:
        """Query the status of every transaction whose `query_at` has passed. Returns how many."""
        due = [
            (order, transaction)
            for order in self.book
            for transaction in order.transactions
            if transaction.query_at is not None and transaction.query_at <= now
        ]
        for order, transaction in due:
            await self.checkout.query_status(order, transaction)
        return len(due)

    def start(self) -> None:
        """Start the loop, which calls `query_due` every `interval_s`."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End the loop."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await self.clock.sleep(self.interval_s)
            try:
                await self.query_due(self.clock.now())
            except Exception:  # an internal error in one order must not end the loop
                log.exception("the status queries of the shop failed")


_FOLDER: Final = Path(__file__).parent

# A form and a callback have less; a larger body gets HTTP 413.
_MAX_BODY_BYTES: Final = 64 * 1024

_SAFE_METHODS: Final = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})


class Shop:
    """The shop. `app` is served; the other parts are there for tests."""

    def __init__(self, settings: ShopSettings, *, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        self.book = OrderBook()
        self.catalogue = make_catalogue(settings.seed, magic_numbers=settings.magic_numbers)
        self.background = Background()
        self._gateway = GatewayClient(settings, clock)
        sms_notifier = SmsNotifier(self._gateway, clock)
        self.checkout = Checkout(
            settings, self.book, self._gateway, sms_notifier, self.background, clock
        )
        self.status_poller = StatusPoller(self.book, self.checkout, clock, settings.poll_interval_s)
        self._headers = _security_headers(settings)
        self.app = self._application(settings)

    def _application(self, settings: ShopSettings) -> web.Application:
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[self._guard])
        environment = aiohttp_jinja2.setup(
            app,
            loader=FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals.update(context(settings))
        pages = Pages(settings, self.catalogue, self.book, self.checkout)
        app.add_routes(pages.routes())
        app.router.add_static("/static/", _FOLDER / "static")
        app.on_response_prepare.append(self._add_headers)
        app.cleanup_ctx.append(self._run)
        return app

    async def _run(self, _app: web.Application) -> AsyncIterator[None]:
        async with self._gateway:
            self.status_poller.start()
            yield
            await self.status_poller.stop()
            await self.background.close()

    async def _add_headers(self, _request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(self._headers)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse forms of other sites, and show errors as pages."""
        if _is_foreign(request):
            return self._error(request, 403, ENGLISH.foreign_form)
        if request.path == CALLBACK_PATH:
            return await handler(request)
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return self._error(request, 404, ENGLISH.not_found)
        except web.HTTPClientError as error:
            return self._error(request, error.status, ENGLISH.not_served)
        except web.HTTPException:
            raise
        except Exception:
            log.exception("a page of the shop failed: %s", request.path)
            return self._error(request, 500, ENGLISH.failed_page)

    @staticmethod
    def _error(request: web.Request, status: int, text: str) -> web.Response:
        names = {"text": text, "here": ""}
        return aiohttp_jinja2.render_template("error.html", request, names, status=status)


def _security_headers(settings: ShopSettings) -> dict[str, str]:
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


def _is_foreign(request: web.Request) -> bool:
    """Whether another site sent this form.

    Callbacks come from a server, which sends no such headers, and have a signature instead.
    """
    if request.method in _SAFE_METHODS or request.path == CALLBACK_PATH:
        return False
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site not in {"same-origin", "none"}:
        return True
    origin = request.headers.get(hdrs.ORIGIN)
    return origin is not None and urlsplit(origin).netloc != request.headers.get(hdrs.HOST)
