"""The demo shop, and certify.toml for it: it runs in a thread, in real time or in `ShopTime`.

Tests add what certify needs and the demo lacks: the number of a new order in a header, an order's
state as JSON, and refunds.
"""

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from aiohttp import web
from aiohttp.typedefs import Handler

from sandbox_sim.certify.application import (
    ApplicationHangs,
    ApplicationUnreachable,
    ConfiguredApplication,
)
from sandbox_sim.certify.bench import CertifyBench, open_bench
from sandbox_sim.certify.cases import CertifyCase, PlacedOrder
from sandbox_sim.certify.configuration import Configuration
from sandbox_sim.certify.runner import plan_parallel_runs, run
from sandbox_sim.certify.verdicts import Run
from sandbox_sim.demo.clock_and_ids import Clock, new_transaction_id
from sandbox_sim.demo.gateway_client import ShopSettings, Unanswered, _wallet_fields
from sandbox_sim.demo.orders import Order, OrderBook, OrderState
from sandbox_sim.demo.shop import Shop
from sandbox_sim.testing import SandboxGateway
from tests.certify.shop_time import GatewayRequest, ShopTime


class RefundDesk:
    """Pays the money of an order back: one payout for each order, never sent a second time."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.payouts: dict[str, str] = {}

    async def refund(self, order: Order) -> None:
        if order.key in self.payouts:
            return
        self.payouts[order.key] = new_transaction_id(order.number)  # kept before it is sent
        await self.send(order, self.payouts[order.key])

    async def send(self, order: Order, transaction_id: str) -> None:
        client: Any = self.shop._gateway
        transaction = replace(order.transactions[-1], transaction_id=transaction_id)
        body = {**client._common_fields(order, transaction), **_wallet_fields(order.customer)}
        with suppress(Unanswered):
            await client._post("/make_payment", {**body, "trans_type": "MTC"})


class Placing:
    """An order that is being placed: its service, and its number once that is known."""

    def __init__(self, service_id: int = 55) -> None:
        self.service_id = service_id
        self.number = ""


_placing: ContextVar[Placing] = ContextVar("_placing")


class ShopWithRefunds(Shop):
    """The demo shop with refunds, which uses the service that an order came with."""

    def __init__(self, settings: ShopSettings, clock: Clock | None) -> None:
        super().__init__(settings, clock=clock)
        self.desk = RefundDesk(self)
        self._services: dict[str, int] = {}  # that of each order, by its number
        self._follow_services()
        self.app.middlewares.append(self._name_the_order)
        self.app.router.add_get("/state/{key}", self._state)
        self.app.router.add_post("/refund/{key}", self._refund)

    @web.middleware
    async def _name_the_order(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not request.path.startswith("/buy/"):
            return await handler(request)
        placing = Placing(int(str((await request.post()).get("service_id", 55))))
        _placing.set(placing)
        response = await handler(request)
        if response.status == 303:
            response.headers["X-Order"] = next(
                each.key for each in self.book if str(each.number) == placing.number
            )
        return response

    def _follow_services(self) -> None:
        """Send every request about an order with the service id that the order came with."""
        client: Any = self._gateway
        genuine = client._post_once

        async def post_once(path: str, body: Mapping[str, Any]) -> Any:
            about = f"{body.get('transaction_id', '')} {body.get('msg_body', '')}"
            (number,) = re.findall(r"(?:SHOP-|order )(\d+)", about)
            if number not in self._services:
                placing = _placing.get(Placing())
                placing.number, self._services[number] = number, placing.service_id
            return await genuine(path, {**body, "service_id": self._services[number]})

        client._post_once = post_once

    async def _state(self, request: web.Request) -> web.Response:
        order = self.book.find_by_key(request.match_info["key"])
        return web.json_response({"state": order.state if order else "pending_payment"})

    async def _refund(self, request: web.Request) -> web.Response:
        order = self.book.find_by_key(request.match_info["key"])
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


def certify_toml(shop_url: str, *, by_service: bool = False) -> Mapping[str, Any]:
    """The document of certify.toml for a shop at this address."""
    order = {**ORDER, "service_id": "{service_id}"} if by_service else ORDER
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
        "order": {"form": order, **numbered},
        "card_order": {"form": {**order, "pay_by": "card"}, **numbered},
        "refund": {"url": f"{shop_url}/refund/{{order}}", "method": "POST"},
        "state": {"url": f"{shop_url}/state/{{order}}", "field": "state"},
        "words": {
            "paid": [OrderState.PROCESSING],
            "pending": [OrderState.PENDING_PAYMENT],
            "failed": [OrderState.FAILED],
            "cancelled": [OrderState.CANCELLED],
        },
    }


class RunningShop:
    """The shop on its own port. breaks: puts a fault into it, also after a restart.

    time: that of the shop, in place of the machine's.
    """

    def __init__(
        self, breaks: Break, *, forgets: bool = False, time: ShopTime | None = None
    ) -> None:
        self._breaks = breaks
        self._forgets = forgets
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._book = OrderBook()
        self._time = time
        self._loop = time.loop if time is not None else asyncio.new_event_loop()
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
            first_query_after_s=0.2,
            longest_query_interval_s=0.2,
            arrives_within_s=0.3,
            poll_interval_s=0.05,
        )
        shop = ShopWithRefunds(settings, self._time)
        if self._time is not None:
            _follow(shop, self._time)
        return shop

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


def _follow(shop: ShopWithRefunds, time: ShopTime) -> None:
    """Keep `time` informed about the open requests to and from the shop."""
    client: Any = shop._gateway
    genuine = client._post_once

    async def post_once(path: str, body: Mapping[str, Any]) -> Any:
        request = GatewayRequest(path, body.get("transaction_id"), asyncio.current_task())
        time.asking.add(request)
        try:
            return await genuine(path, body)
        finally:
            time.asking.discard(request)

    client._post_once = post_once

    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        time.answering.add(task)
        time.changed.set()
        try:
            return await handler(request)
        finally:
            time.answering.discard(task)

    shop.app.middlewares.insert(0, answer)


async def _cancel_the_rest() -> None:
    """Cancel the requests that still hang."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class TimedApplication(ConfiguredApplication):
    """The configured application with the time of its shop; its restart is a function."""

    def __init__(
        self,
        configuration: Configuration,
        gateway: SandboxGateway,
        time: ShopTime,
        restart: Callable[[], None],
    ) -> None:
        super().__init__(configuration, gateway.url)
        self.time: ShopTime = time
        self.restart = restart  # type: ignore[method-assign]
        faults: list[dict[str, Any]] = []
        genuine = gateway.fault

        def fault(**given: Any) -> dict[str, Any]:
            faults.append(given)
            return genuine(**given)

        def is_held(request: GatewayRequest) -> bool:
            return (
                bool(faults)
                and "timeout" in faults[-1]
                and request.path == "/make_payment"
                and any(
                    each.rule == "fault" and each.transaction_id == request.transaction_id
                    for each in gateway.requests
                )
            )

        gateway.fault = fault  # type: ignore[method-assign]
        time.is_held = is_held

    def place(self, order: PlacedOrder, reference: str, within: timedelta) -> str:
        """Place an order; the limit `within` is one in the time of the shop."""
        hung: list[bool] = []
        loop = self.time.loop

        def hang_up() -> None:
            hung.extend(task.cancel() for task in self.time.answering)

        def begin() -> None:
            limits.append(loop.call_later(within.total_seconds(), hang_up))

        limits: list[asyncio.TimerHandle] = []
        loop.call_soon_threadsafe(begin)
        try:
            return super().place(order, reference, within * 100)
        except ApplicationUnreachable as error:
            raise ApplicationHangs(str(error)) if hung else error from None
        finally:
            loop.call_soon_threadsafe(lambda: limits.pop().cancel())


def certified(
    cases: Sequence[CertifyCase],
    breaks: Break = lambda _: None,
    *,
    forgets: bool = False,
    seed: int | None = None,
    by_service: bool = False,
) -> Run:
    """Run the cases against the demo shop with this fault, without waiting.

    by_service: each case has its own gateway and service, behind one port. `ShopTime` waits for one
    case at a time, so they still run one after the other.
    """
    time = ShopTime()
    shop = RunningShop(breaks, forgets=forgets, time=time)
    document = certify_toml(shop.url, by_service=by_service)
    configuration = Configuration.model_validate(document)
    restarts = any(case.restarts("gateway") for case in cases)
    with (
        open_bench(configuration, SandboxGateway, restarts=restarts, cases=len(cases)) as bench,
        shop.running(bench.gateway_url) as restart,
    ):

        def reach(configuration: Configuration, bench: CertifyBench) -> TimedApplication:
            return TimedApplication(configuration, bench.gateway, time, restart)

        plan = plan_parallel_runs(configuration, bench, cases, SandboxGateway, reach)
        return run(
            *(bench, reach(configuration, bench), cases),
            seed=seed,
            parallel=plan and plan._replace(at_once=1),
        )
