"""The demo shop, and certify.toml for it: it runs in a thread, as fast as a test needs it."""

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from aiohttp import web

from sandbox_sim.certify.application import ConfiguredApplication
from sandbox_sim.certify.bench import CertifyBench, open_bench
from sandbox_sim.certify.cases import CertifyCase
from sandbox_sim.certify.configuration import Configuration
from sandbox_sim.certify.runner import run
from sandbox_sim.certify.verdicts import Run
from sandbox_sim.demo.orders import OrderBook, OrderState
from sandbox_sim.demo.settings import ShopSettings
from sandbox_sim.demo.shop import Shop

Break = Callable[[Shop], None]

ORDER: Final = {
    "amount": "{amount}",
    "airtime_nw": "{network}",
    "airtime_phone": "{phone}",
    "name": "Ama Mensah",
    "phone": "{phone}",
    "nw": "{network}",
    "pay_by": "mobile_money",
}


def certify_toml(shop_url: str, **changes: Any) -> Mapping[str, Any]:
    """The document of certify.toml for a shop at this address."""
    return {
        "gateway": {"port": 0, "callback_profile": "event"},
        "application": {
            "polls_every": "300ms",
            "gives_up_after": "800ms",
            "reacts_within": "200ms",
            "restart": "true",
            "receipts": "sms",
        },
        "order": {
            "url": f"{shop_url}/buy/airtime",
            "form": ORDER,
            "pattern": r"Location: /orders/([\w-]+)",
        },
        "state": {"url": f"{shop_url}/state/{{order}}", "field": "state"},
        "words": {
            "paid": [OrderState.PROCESSING],
            "pending": [OrderState.PENDING_PAYMENT],
            "failed": [OrderState.FAILED],
            "cancelled": [OrderState.CANCELLED],
        },
        **changes,
    }


class RunningShop:
    """The shop on a port of its own. breaks: puts a fault into it, also after a restart."""

    def __init__(self, breaks: Break, *, forgets: bool = False) -> None:
        self._breaks = breaks
        self._forgets = forgets
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._book = OrderBook()
        self._loop = asyncio.new_event_loop()
        self._runner: web.AppRunner | None = None

    def _made(self, gateway_url: str) -> Shop:
        settings = ShopSettings(
            url=self.url,
            gateway_url=gateway_url,
            client_key="sandbox_key",
            secret_key="sandbox_secret",
            service_id=55,
            payment_pages=(),
            timeout_s=0.8,
            ask_after_s=0.2,
            ask_at_most_s=0.2,
            arrives_within_s=0.3,
            look_every_s=0.05,
        )
        return Shop(settings)

    async def _start(self, gateway_url: str) -> None:
        shop = self._made(gateway_url)
        if self._forgets:
            self._book = OrderBook()
        vars(shop.book).update(vars(self._book))  # the database of the shop
        self._book = shop.book
        self._breaks(shop)

        async def state(request: web.Request) -> web.Response:
            order = shop.book.of_key(request.match_info["key"])
            return web.json_response({"state": order.state if order else "pending_payment"})

        shop.app.router.add_get("/state/{key}", state)
        self._runner = web.AppRunner(shop.app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.SockSite(self._runner, self._listener.dup()).start()

    async def _stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    @contextmanager
    def running(self, gateway_url: str) -> Iterator[Callable[[], None]]:
        """Serve the shop; yields the function that restarts it."""
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()

        def do(work: Any) -> None:
            asyncio.run_coroutine_threadsafe(work, self._loop).result()

        def restart() -> None:
            do(self._stop())
            do(self._start(gateway_url))

        do(self._start(gateway_url))
        try:
            yield restart
        finally:
            do(self._stop())
            do(_cancel_the_rest())
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()
            self._listener.close()


async def _cancel_the_rest() -> None:
    """End what still hangs in a request."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class RestartedInPlace(ConfiguredApplication):
    """The configured application, whose restart is a function of the test."""

    def __init__(self, bench: CertifyBench, restart: Callable[[], None]) -> None:
        super().__init__(bench.configuration, bench.gateway_url)
        self.restart = restart  # type: ignore[method-assign]


def certified(
    cases: Sequence[CertifyCase],
    breaks: Break = lambda _: None,
    *,
    forgets: bool = False,
    seed: int | None = None,
    **changes: Any,
) -> Run:
    """Run the cases against the demo shop with this fault."""
    shop = RunningShop(breaks, forgets=forgets)
    configuration = Configuration.model_validate(certify_toml(shop.url, **changes))
    with open_bench(configuration) as bench, shop.running(bench.gateway_url) as restart:
        return run(bench, cases, application=RestartedInPlace(bench, restart), seed=seed)


def named(text: str) -> str:
    """The text of a test without line breaks, for comparisons."""
    return re.sub(r"\s+", " ", text).strip()
