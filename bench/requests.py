"""The requests that the benchmark sends, as bytes."""

import json
from collections.abc import Callable

from tests.kit.requests import basic, collection

AUTHORIZATION = basic()


def payment(transaction_id: str, **fields: object) -> dict[str, object]:
    """The body of a collection as a shop sends it; `fields` replace its own."""
    usual = {
        "reference": "Order 10001",
        "nickname": "Ama Mensah",
        "request_time": "2026-01-31 09:30:00",
    }
    return collection(transaction_id, **{**usual, **fields})


def collections(callback_url: str, name: str) -> Callable[[int], bytes]:
    """Mobile money collections, each with its own `transaction_id` from `name` and a number."""
    template = json.dumps(payment(f"{name}-%010d", callback_url=callback_url)).encode()
    length = len(template % 0)
    head = (
        "POST /make_payment HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\n"
        f"Authorization: {AUTHORIZATION}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()
    whole = head.replace(b"%", b"%%") + template
    return lambda number: whole % number
