"""A gateway, the shop that pays through it, and Chromium."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from playwright.async_api import Browser, ViewportSize

from sandbox_sim.demo.gateway_client import ShopSettings
from sandbox_sim.demo.shop import Shop
from sandbox_sim.demo.texts import ENGLISH
from sandbox_sim.ports import CallbackSender
from tests.conftest import Sandbox, sandboxes
from tests.demo.browser import DESK, Scheme, WatchedPage, open_page


@dataclass
class Stage:
    """The parts of a demonstration. The clock is stopped unless a test moves it."""

    sandbox: Sandbox
    shop_url: str
    browser: Browser

    @property
    def url(self) -> str:
        return self.sandbox.url

    @asynccontextmanager
    async def page(
        self, *, viewport: ViewportSize = DESK, scheme: Scheme = "light"
    ) -> AsyncIterator[WatchedPage]:
        """A page in its own context; a problem on it raises `AssertionError` at the end."""
        async with open_page(self.browser, viewport=viewport, scheme=scheme) as watched:
            yield watched
            if watched.problems:
                raise AssertionError(f"on {watched.page.url}: {watched.problems}")


@asynccontextmanager
async def open_stage(
    browser: Browser, sender: CallbackSender | None = None, **settings: Any
) -> AsyncIterator[Stage]:
    """Start a gateway with these settings, and the shop.

    sender: sends the callbacks in place of a real one.
    """
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        shop_host = f"127.0.0.1:{listener.getsockname()[1]}"
        chosen = {
            "approval": "handset",
            "callback_profile": "event",
            "sandbox_card_entry": True,
            "merchant_names": {"55": ENGLISH.shop},
            "allowed_hosts": [shop_host],
            **settings,
        }
        start = await stack.enter_async_context(sandboxes())
        sandbox = await start(sender=sender, **chosen)
        shop = Shop(
            ShopSettings(
                url=f"http://{shop_host}",
                gateway_url=sandbox.url,
                client_key="sandbox_key",
                secret_key="sandbox_secret",
                service_id=55,
                payment_pages=(sandbox.url,),
                dashboard=f"{sandbox.url}/_sandbox/",
                approval_on_handset=True,
            )
        )
        shop_runner = web.AppRunner(shop.app, access_log=None, shutdown_timeout=1)
        await shop_runner.setup()
        stack.push_async_callback(shop_runner.cleanup)
        await web.SockSite(shop_runner, listener).start()
        yield Stage(sandbox, f"http://{shop_host}", browser)
