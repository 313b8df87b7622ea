"""The shop on a free port, paying through a gateway on a virtual clock, over real sockets."""

import asyncio
import hashlib
import hmac
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import ClientResponse, ClientSession, web

from sandbox_sim.demo.catalogue import MAGIC_NUMBERS
from sandbox_sim.demo.gateway_client import CALLBACK_PATH, ShopSettings
from sandbox_sim.demo.orders import Order, OrderState, Transaction
from sandbox_sim.demo.shop import Shop
from tests.conftest import Sandbox, StartSandbox, sandboxes

AMA = {"name": "Ama Mensah", "phone": "0244000001", "nw": "MTN", "pay_by": "mobile_money"}


class ShopClock:
    """A stopped clock; a sleep ends when the test has advanced the clock that far."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, 9, tzinfo=UTC)
        self._sleeping: list[tuple[datetime, asyncio.Event]] = []
        self._begun = asyncio.Condition()

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        async with self._begun:
            self._sleeping.append((self._now + timedelta(seconds=seconds), woken))
            self._begun.notify_all()
        await woken.wait()

    async def sleepers(self, count: int) -> None:
        """Wait until this many tasks sleep."""
        async with self._begun:
            await self._begun.wait_for(lambda: len(self._sleeping) >= count)

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        due = [each for each in self._sleeping if each[0] <= self._now]
        self._sleeping = [each for each in self._sleeping if each[0] > self._now]
        for _, woken in due:
            woken.set()


@dataclass
class Demo:
    """A running shop and its gateway."""

    url: str
    shop: Shop
    settings: ShopSettings
    sandbox: Sandbox
    session: ClientSession
    clock: ShopClock = field(repr=False)

    async def send(self, product: str = "cocoa", **fields: str) -> ClientResponse:
        """Send the checkout form as a browser does; the redirect is not followed."""
        form = {"quantity": "2", **AMA, **fields}
        address = f"{self.url}/buy/{product}"
        return await self.session.post(address, data=form, allow_redirects=False)

    async def buy(self, product: str = "cocoa", **fields: str) -> Order:
        """Send the checkout form. Returns the new order."""
        answer = await self.send(product, **fields)
        assert answer.status == 303, await answer.text()
        return self.orders[-1]

    @property
    def orders(self) -> list[Order]:
        return list(self.shop.book)

    async def settle(self) -> None:
        """Advance the gateway by a second, and wait until the shop has nothing left to do."""
        await self.sandbox.advance(seconds=1)
        await self.shop.background.wait_idle()

    async def ask_after(self, seconds: float) -> None:
        """Let this time pass in the shop, and send the status queries that are due."""
        self.clock.advance(seconds)
        await self.shop.status_poller.query_due(self.clock.now())
        await self.shop.background.wait_idle()

    async def get(self, path: str) -> str:
        async with self.session.get(self.url + path) as answer:
            return await answer.text()

    async def post(self, path: str, **headers: str) -> ClientResponse:
        address = self.url + path
        return await self.session.post(address, headers=headers, allow_redirects=False)

    async def call_back(self, body: bytes, signature: str | None = None) -> ClientResponse:
        """Send a callback; signature: by default the right one."""
        signed = hmac.new(self.settings.secret_key.encode(), body, hashlib.sha256).hexdigest()
        headers = {"X-Service-Signature": signed if signature is None else signature}
        return await self.session.post(self.url + CALLBACK_PATH, data=body, headers=headers)

    async def page(self, order: Order) -> str:
        return await self.get(f"/orders/{order.key}")


def event(transaction: Transaction, **fields: Any) -> bytes:
    """The body of a callback that the transaction succeeded; `fields` replace its own."""
    body = {
        "event_type": "payment_success",
        "transaction_id": transaction.transaction_id,
        "order_id": "Order 1001",
        "status": "000",
        "status_desc": "Transaction Successful",
        "network_transaction_id": "12345678901",
        "amount": float(transaction.amount),
        "currency_code": "GHS",
        "customer_number": "233244000001",
        "reference": "Order 1001",
        "timestamp": "2026-01-01T09:00:00Z",
        **fields,
    }
    return json.dumps(body).encode()


def only(order: Order) -> Transaction:
    """The one transaction of an order."""
    (transaction,) = order.transactions
    return transaction


def kinds(order: Order) -> list[str]:
    """The kinds of the notes of an order, oldest first."""
    return [note.kind for note in order.notes]


def facts(order: Order) -> tuple[OrderState, bool, list[str]]:
    """What a refused callback must not change."""
    return order.state, order.needs_attention, kinds(order)


StartDemo = Callable[..., Awaitable[Demo]]


@asynccontextmanager
async def demos(start_sandbox: StartSandbox) -> AsyncIterator[StartDemo]:
    """Yield a function that starts a gateway with these settings, and a shop that uses it."""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(ClientSession())

        async def start(gateway_url: str = "", **settings: Any) -> Demo:
            chosen = {
                "callback_profile": "event",
                "sandbox_card_entry": True,
                "magic_outcomes": dict(MAGIC_NUMBERS),
                **settings,
            }
            sandbox = await start_sandbox(**chosen)
            clock = ShopClock()
            listener = socket.create_server(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            shop_settings = ShopSettings(
                url=url,
                gateway_url=gateway_url or sandbox.url,
                client_key="sandbox_key",
                secret_key="sandbox_secret",
                service_id=sandbox.service_id,
                payment_pages=(sandbox.url,),
                magic_numbers=True,
            )
            shop = Shop(shop_settings, clock=clock)
            runner = web.AppRunner(shop.app, access_log=None, shutdown_timeout=1)
            stack.push_async_callback(runner.cleanup)
            await runner.setup()
            await shop.status_poller.stop()  # the tests say when it asks
            await web.SockSite(runner, listener).start()
            return Demo(url, shop, shop_settings, sandbox, session, clock)

        yield start


@pytest.fixture
async def start_demo(start_sandbox: StartSandbox) -> AsyncIterator[StartDemo]:
    """Start a gateway with these settings, and a shop that pays through it."""
    async with demos(start_sandbox) as start:
        yield start


@pytest.fixture
async def demo(start_demo: StartDemo) -> Demo:
    """The shop, and a gateway with the settings of a demonstration."""
    return await start_demo()


@pytest_asyncio.fixture(loop_scope="session")
async def demo_for_browser() -> AsyncIterator[Demo]:
    """The same, in the event loop of the browser."""
    async with sandboxes() as start_sandbox, demos(start_sandbox) as start:
        yield await start()
