"""The requests that the benchmark sends, as bytes."""

import base64
import json
from collections.abc import Callable

AUTHORIZATION = "Basic " + base64.b64encode(b"sandbox_key:sandbox_secret").decode()


def collections(callback_url: str, name: str) -> Callable[[int], bytes]:
    """Mobile money collections, each with its own `transaction_id` from `name` and a number."""
    body = {
        "service_id": 55,
        "reference": "Order 10001",
        "transaction_id": f"{name}-%010d",
        "trans_type": "CTM",
        "amount": 10.5,
        "nw": "MTN",
        "payment_option": "MOM",
        "customer_number": "0244000001",
        "nickname": "Ama Mensah",
        "callback_url": callback_url,
        "request_time": "2026-01-31 09:30:00",
    }
    template = json.dumps(body).encode()
    length = len(template % 0)
    head = (
        "POST /make_payment HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\n"
        f"Authorization: {AUTHORIZATION}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()
    whole = head.replace(b"%", b"%%") + template
    return lambda number: whole % number
