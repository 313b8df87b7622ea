"""A client under test without an application: its callbacks go to an inbox of the gateway.

pip install pytest httpx
"""

import httpx
import pytest


def collect(gateway, transaction_id, **fields):
    """The client under test."""
    payment = {
        "service_id": gateway.service_id,
        "reference": "Order 1",
        "transaction_id": transaction_id,
        "trans_type": "CTM",
        "amount": 10.5,
        "nw": "MTN",
        "payment_option": "MOM",
        "customer_number": "0244000001",
        "nickname": "Ama",
        "callback_url": gateway.inbox_url("orders"),
        "request_time": "2026-01-01 09:00",
        **fields,
    }
    answer = httpx.post(f"{gateway.url}/make_payment", json=payment, auth=gateway.auth)
    return answer.json()["response_code"]


def status(gateway, transaction_id):
    asked = {"service_id": gateway.service_id, "transaction_id": transaction_id}
    answer = httpx.post(f"{gateway.url}/get_transaction_status", json=asked, auth=gateway.auth)
    return answer.json()


def test_a_payment(sandbox_gateway):
    assert collect(sandbox_gateway, "T1") == "202"

    sandbox_gateway.wait_callback(transaction_id="T1")

    delivery = sandbox_gateway.inbox("orders").expect_one(body={"trans_ref": "T1"})
    assert delivery.body["trans_status"] == "000/SUCCESS"
    assert delivery.signature == "valid"


def test_a_status_expires_after_fifteen_minutes(sandbox_gateway):
    collect(sandbox_gateway, "T1")

    sandbox_gateway.advance(minutes=14, seconds=59)
    assert status(sandbox_gateway, "T1")["response_data"]["status"] == "000"

    sandbox_gateway.advance(seconds=1)
    assert status(sandbox_gateway, "T1")["response_code"] == "027"


def test_a_callback_that_is_not_acknowledged_is_tried_three_times(sandbox_gateway):
    collect(sandbox_gateway, "T1", callback_url="http://127.0.0.1:9/refused")

    callback = sandbox_gateway.wait_callback(transaction_id="T1", state="failed")

    assert [attempt.status_code for attempt in callback.attempts] == [None, None, None]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"customer_number": "0244000009"}, "015"),
        ({"customer_number": "0540010000"}, "019"),
        ({"amount": 10000.01}, "016"),
    ],
)
def test_a_payment_is_refused(sandbox_gateway, fields, code):
    assert collect(sandbox_gateway, "T1", **fields) == code

    sandbox_gateway.advance(minutes=15)
    sandbox_gateway.callbacks.expect_none()
