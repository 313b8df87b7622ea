"""A Flask shop under test, or any other WSGI application: pip install pytest flask requests

The gateway sends callbacks over a socket, so a thread serves the shop. If the test client is
enough, pass the callback to it instead.
"""

import hashlib
import hmac
import threading

import pytest
import requests
from flask import Flask, abort, request
from werkzeug.serving import make_server


def make_shop(gateway_url, service_id, auth):
    """The application: /pay sends a payment, /callbacks receives its outcome."""
    shop = Flask(__name__)
    shop.orders = {}

    @shop.post("/pay")
    def pay():
        order = request.get_json()
        payment = {
            "service_id": service_id,
            "reference": f"Order {order['id']}",
            "transaction_id": order["id"],
            "trans_type": "CTM",
            "amount": order["amount"],
            "nw": "MTN",
            "payment_option": "MOM",
            "customer_number": "0244000001",
            "nickname": "Ama",
            "callback_url": shop.config["CALLBACK_URL"],
            "request_time": "2026-01-01 09:00",
        }
        answer = requests.post(f"{gateway_url}/make_payment", json=payment, auth=auth, timeout=5)
        accepted = answer.json()["response_code"] == "202"
        shop.orders[order["id"]] = "waiting" if accepted else "refused"
        return ""

    @shop.post("/callbacks")
    def callbacks():
        genuine = hmac.new(auth[1].encode(), request.get_data(), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(genuine, request.headers.get("X-Service-Signature", "")):
            abort(401)
        callback = request.get_json()
        paid = callback["trans_status"].startswith("000")
        shop.orders[callback["trans_ref"]] = "paid" if paid else "failed"
        return ""

    return shop


@pytest.fixture
def shop(sandbox_gateway):
    return make_shop(sandbox_gateway.url, sandbox_gateway.service_id, sandbox_gateway.auth)


@pytest.fixture
def shop_url(shop):
    server = make_server("127.0.0.1", 0, shop, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.port}"
    shop.config["CALLBACK_URL"] = f"{url}/callbacks"
    yield url
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_order_is_paid(sandbox_gateway, shop, shop_url):
    requests.post(f"{shop_url}/pay", json={"id": "A1", "amount": 10.5}, timeout=5)
    assert shop.orders == {"A1": "waiting"}

    sandbox_gateway.wait_callback(transaction_id="A1", state="delivered")

    assert shop.orders == {"A1": "paid"}


def test_an_order_is_paid_with_a_test_client(sandbox_gateway, shop):
    client = shop.test_client()
    shop.config["CALLBACK_URL"] = sandbox_gateway.inbox_url()
    client.post("/pay", json={"id": "A1", "amount": 10.5})

    callback = sandbox_gateway.wait_callback(transaction_id="A1")
    answer = client.post("/callbacks", data=callback.content, headers=callback.headers)

    assert answer.status_code == 200
    assert shop.orders == {"A1": "paid"}
