"""The demo shop, and certify.toml for it: it runs in a thread, as fast as a test needs it.

Tests add what certify needs and the demo has not: the number of a new order in a header, an order's
state as JSON, and refunds.
"""

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from aiohttp import web
from aiohttp.typedefs import Handler

from sandbox_sim.certify.application import ConfiguredApplication
from sandbox_sim.certify.bench import open_bench
from sandbox_sim.certify.cases import CertifyCase
from sandbox_sim.certify.configuration import Configuration
from sandbox_sim.certify.runner import run
from sandbox_sim.certify.verdicts import Run
from sandbox_sim.demo import ids
from sandbox_sim.demo.gateway_client import Unanswered, _wallet_fields
from sandbox_sim.demo.orders import Order, OrderBook, OrderState
from sandbox_sim.demo.settings import ShopSettings
from sandbox_sim.demo.shop import Shop


class RefundDesk:
    """Pays the money of an order back: one payout for each order, never sent a second time."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.payouts: dict[str, str] = {}

    async def refund(self, order: Order) -> None:
        if order.key in self.payouts:
            return
        self.payouts[order.key] = ids.transaction_id(order.number)  # kept before it is sent
        await self.send(order, self.payouts[order.key])

    async def send(self, order: Order, transaction_id: str) -> None:
        client: Any = self.shop._gateway
        transaction = replace(order.transactions[-1], transaction_id=transaction_id)
        body = {**client._common(order, transaction), **_wallet_fields(order.customer)}
        with suppress(Unanswered):
            await client._post("/make_payment", {**body, "trans_type": "MTC"})


class ShopWithRefunds(Shop):
    """The demo shop with refunds."""

    def __init__(self, settings: ShopSettings) -> None:
        super().__init__(settings)
        self.desk = RefundDesk(self)
        self.app.middlewares.append(self._name_the_order)
        self.app.router.add_get("/state/{key}", self._state)
        self.app.router.add_post("/refund/{key}", self._refund)

    @web.middleware
    async def _name_the_order(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        if request.path.startswith("/buy/") and response.status == 303:
            response.headers["X-Order"] = list(self.book)[-1].key
        return response

    async def _state(self, request: web.Request) -> web.Response:
        order = self.book.of_key(request.match_info["key"])
        return web.json_response({"state": order.state if order else "pending_payment"})

    async def _refund(self, request: web.Request) -> web.Response:
        order = self.book.of_key(request.match_info["key"])
        assert order is not None
        await self.desk.refund(order)
        return web.Response()


Break = Callable[[ShopWithRefunds], None]

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
    numbered = {"url": f"{shop_url}/buy/airtime", "pattern": r"X-Order: ([\w-]+)"}
    return {
        "gateway": {"port": 0, "callback_profile": "event", "sandbox_card_entry": True},
        "application": {
            "polls_every": "300ms",
            "gives_up_after": "800ms",
            "reacts_within": "200ms",
            "restart": "true",
            "receipts": "sms",
        },
        "order": {"form": ORDER, **numbered},
        "card_order": {"form": {**ORDER, "pay_by": "card"}, **numbered},
        "refund": {"url": f"{shop_url}/refund/{{order}}", "method": "POST"},
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
        self.shop: ShopWithRefunds | None = None  # while it runs

    def _made(self, gateway_url: str) -> ShopWithRefunds:
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
        return ShopWithRefunds(settings)

    async def _start(self, gateway_url: str) -> None:
        shop = self._made(gateway_url)
        if self._forgets:
            self._book = OrderBook()
        vars(shop.book).update(vars(self._book))  # the database of the shop
        self._book = shop.book
        self._breaks(shop)
        self.shop = shop
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

    def __init__(
        self, configuration: Configuration, gateway_url: str, restart: Callable[[], None]
    ) -> None:
        super().__init__(configuration, gateway_url)
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
        application = RestartedInPlace(configuration, bench.gateway_url, restart)
        return run(bench, application, cases, seed=seed)


def named(text: str) -> str:
    """The text of a test without line breaks, for comparisons."""
    return re.sub(r"\s+", " ", text).strip()
