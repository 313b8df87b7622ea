"""A Django shop under test, served over ASGI by uvicorn: pip install pytest django httpx uvicorn

Any other ASGI application, Starlette and FastAPI among them, is served in the same way. With
pytest-django its fixture `live_server` takes the place of `shop_url`, and `settings` that of
`override_settings`.
"""

import hashlib
import hmac
import json
import socket
import threading

import django
import httpx
import pytest
import uvicorn
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpResponse
from django.test import override_settings
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

ORDERS = {}


@csrf_exempt
@require_POST
def pay(request):
    """Send a payment."""
    order = json.loads(request.body)
    payment = {
        "service_id": settings.GATEWAY_SERVICE_ID,
        "reference": f"Order {order['id']}",
        "transaction_id": order["id"],
        "trans_type": "CTM",
        "amount": order["amount"],
        "nw": "MTN",
        "payment_option": "MOM",
        "customer_number": "0244000001",
        "nickname": "Ama",
        "callback_url": request.build_absolute_uri("/callbacks"),
        "request_time": "2026-01-01 09:00",
    }
    answer = httpx.post(
        f"{settings.GATEWAY_URL}/make_payment", json=payment, auth=settings.GATEWAY_AUTH
    )
    ORDERS[order["id"]] = "waiting" if answer.json()["response_code"] == "202" else "refused"
    return HttpResponse()


@csrf_exempt
@require_POST
def callbacks(request):
    """Receive the outcome of a payment."""
    _, secret_key = settings.GATEWAY_AUTH
    genuine = hmac.new(secret_key.encode(), request.body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(genuine, request.headers.get("X-Service-Signature", "")):
        return HttpResponse(status=401)
    callback = json.loads(request.body)
    paid = callback["trans_status"].startswith("000")
    ORDERS[callback["trans_ref"]] = "paid" if paid else "failed"
    return HttpResponse()


urlpatterns = [path("pay", pay), path("callbacks", callbacks)]

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["127.0.0.1"], SECRET_KEY="of the tests")
django.setup()


@pytest.fixture(scope="module")
def shop_url():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(get_asgi_application(), log_level="warning"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture(autouse=True)
def _gateway_of_the_test(sandbox_gateway):
    ORDERS.clear()
    with override_settings(
        GATEWAY_URL=sandbox_gateway.url,
        GATEWAY_AUTH=sandbox_gateway.auth,
        GATEWAY_SERVICE_ID=sandbox_gateway.service_id,
    ):
        yield


def test_an_order_is_paid(sandbox_gateway, shop_url):
    httpx.post(f"{shop_url}/pay", json={"id": "A1", "amount": 10.5})
    assert ORDERS == {"A1": "waiting"}

    sandbox_gateway.wait_callback(transaction_id="A1", state="delivered")

    assert ORDERS == {"A1": "paid"}


def test_a_forged_callback_is_refused(sandbox_gateway, shop_url):
    httpx.post(f"{shop_url}/pay", json={"id": "A1", "amount": 10.5})

    forged = {"trans_ref": "A1", "trans_status": "000/SUCCESS"}
    answer = httpx.post(f"{shop_url}/callbacks", json=forged)

    assert answer.status_code == 401
    assert ORDERS == {"A1": "waiting"}
