"""An aiohttp shop under test, with pytest-aiohttp: pip install pytest-aiohttp

The shop runs on the event loop of the test, so the test must not block that loop while the gateway
calls the shop. It awaits `sandbox_gateway.aio` instead.
"""

import hashlib
import hmac

import pytest
import pytest_asyncio
from aiohttp import ClientSession, web

pytestmark = pytest.mark.asyncio  # like `pytest_asyncio.fixture`, needed outside auto mode only

ORDERS: web.AppKey[dict[str, str]] = web.AppKey("orders")


def make_shop(gateway_url, service_id, headers, secret_key):
    """The application: /pay sends a payment, /callbacks receives its outcome."""
    shop = web.Application()
    shop[ORDERS] = {}

    async def pay(request):
        order = await request.json()
        payment = {
            "service_id": service_id,
            "reference": f"Order {order['id']}",
            "transaction_id": order["id"],
            "trans_type": "CTM",
            "amount": order["amount"],
            "nw": "MTN",
            "payment_option": "MOM",
            "customer_number": order["wallet"],
            "nickname": "Ama",
            "callback_url": f"{request.scheme}://{request.host}/callbacks",
            "request_time": "2026-01-01 09:00",
        }
        async with (
            ClientSession(headers=headers) as client,
            client.post(f"{gateway_url}/make_payment", json=payment) as answer,
        ):
            accepted = (await answer.json())["response_code"] == "202"
        shop[ORDERS][order["id"]] = "waiting" if accepted else "refused"
        return web.Response()

    async def callbacks(request):
        content = await request.read()
        genuine = hmac.new(secret_key.encode(), content, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(genuine, request.headers.get("X-Service-Signature", "")):
            raise web.HTTPForbidden
        callback = await request.json()
        paid = callback["trans_status"].startswith("000")
        shop[ORDERS][callback["trans_ref"]] = "paid" if paid else "failed"
        return web.Response()

    shop.router.add_post("/pay", pay)
    shop.router.add_post("/callbacks", callbacks)
    return shop


@pytest_asyncio.fixture
async def shop(sandbox_gateway, aiohttp_client):
    _, secret_key = sandbox_gateway.auth
    app = make_shop(
        sandbox_gateway.url, sandbox_gateway.service_id, sandbox_gateway.headers, secret_key
    )
    return await aiohttp_client(app)


async def test_an_order_is_paid(sandbox_gateway, shop):
    await shop.post("/pay", json={"id": "A1", "amount": 10.5, "wallet": "0244000001"})
    assert shop.app[ORDERS] == {"A1": "waiting"}

    await sandbox_gateway.aio.wait_callback(transaction_id="A1", state="delivered")

    assert shop.app[ORDERS] == {"A1": "paid"}
    sandbox_gateway.callbacks.expect_one(transaction_id="A1", status="000", amount=10.5)


async def test_an_order_is_refused(sandbox_gateway, shop):
    await shop.post("/pay", json={"id": "A2", "amount": 10.5, "wallet": "0244000009"})

    assert shop.app[ORDERS] == {"A2": "refused"}
    await sandbox_gateway.aio.advance(minutes=15)
    sandbox_gateway.callbacks.expect_none(transaction_id="A2")
    sandbox_gateway.requests.expect_one(transaction_id="A2", response_code="015")
