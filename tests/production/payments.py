"""A collection of mode P, with every field that production requires."""

from typing import Any

PAYMENT: dict[str, Any] = {
    "service_id": 55,
    "reference": "Order 1",
    "transaction_id": "T1",
    "trans_type": "CTM",
    "amount": 10.5,
    "nw": "MTN",
    "payment_option": "MOM",
    "customer_number": "0244000001",
    "nickname": "Ama",
    "request_time": "2026-01-31 09:30:00",
}
