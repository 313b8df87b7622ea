"""Puts the shop together."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import aiohttp_jinja2
from aiohttp import web
from aiohttp.typedefs import Handler
from jinja2 import FileSystemLoader, StrictUndefined

from sandbox_sim.demo.background import Background
from sandbox_sim.demo.catalogue import make_catalogue
from sandbox_sim.demo.checkout import Checkout
from sandbox_sim.demo.clock import Clock, SystemClock
from sandbox_sim.demo.follow_up import FollowUp
from sandbox_sim.demo.gateway_client import GatewayClient
from sandbox_sim.demo.notices import Notices
from sandbox_sim.demo.order_book import OrderBook
from sandbox_sim.demo.pages import Pages, context
from sandbox_sim.demo.security import is_foreign, security_headers
from sandbox_sim.demo.settings import CALLBACK_PATH, ShopSettings
from sandbox_sim.demo.texts import ENGLISH, Texts

log = logging.getLogger("sandbox_sim.demo")

_HERE: Final = Path(__file__).parent
# A form and a callback have less; a larger body gets HTTP 413.
_MAX_BODY_BYTES: Final = 64 * 1024


class Shop:
    """The shop. `app` is served; the other parts are there for tests."""

    def __init__(
        self, settings: ShopSettings, *, clock: Clock | None = None, texts: Texts = ENGLISH
    ) -> None:
        clock = clock or SystemClock()
        self.book = OrderBook()
        self.catalogue = make_catalogue(settings.seed, magic_numbers=settings.magic_numbers)
        self.background = Background()
        self._gateway = GatewayClient(settings, clock)
        notices = Notices(settings, texts, self._gateway, clock)
        self.checkout = Checkout(
            settings, texts, self.book, self._gateway, notices, self.background, clock
        )
        self.follow_up = FollowUp(self.book, self.checkout, clock)
        self._texts = texts
        self._headers = security_headers(settings)
        self.app = self._application(settings)

    def _application(self, settings: ShopSettings) -> web.Application:
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[self._guard])
        environment = aiohttp_jinja2.setup(
            app,
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals.update(context(settings, self._texts))
        pages = Pages(settings, self._texts, self.catalogue, self.book, self.checkout)
        app.add_routes(pages.routes())
        app.router.add_static("/static/", _HERE / "static")
        app.on_response_prepare.append(self._add_headers)
        app.cleanup_ctx.append(self._run)
        return app

    async def _run(self, _app: web.Application) -> AsyncIterator[None]:
        async with self._gateway:
            self.follow_up.start()
            yield
            await self.follow_up.stop()
            await self.background.close()

    async def _add_headers(self, _request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(self._headers)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse forms of other sites, and show errors as pages."""
        if is_foreign(request):
            return self._error(request, 403, self._texts.foreign_form)
        if request.path == CALLBACK_PATH:
            return await handler(request)
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return self._error(request, 404, self._texts.not_found)
        except web.HTTPClientError as error:
            return self._error(request, error.status, self._texts.not_served)
        except web.HTTPException:
            raise
        except Exception:
            log.exception("a page of the shop failed: %s", request.path)
            return self._error(request, 500, self._texts.failed_page)

    @staticmethod
    def _error(request: web.Request, status: int, text: str) -> web.Response:
        names = {"text": text, "here": ""}
        return aiohttp_jinja2.render_template("error.html", request, names, status=status)
