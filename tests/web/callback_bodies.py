"""The body of a callback in each profile."""

from typing import Any

TRANS = {
    "trans_ref": "T1",
    "trans_id": "<network id>",
    "trans_status": "000/SUCCESS",
    "message": "SUCCESSFUL",
    "customer_number": "233244000001",
    "nw": "MTN",
    "payment_mode": "MOM",
    "amount": "10.5",
}
FLAT = {
    "transaction_id": "T1",
    "status": "000",
    "status_desc": "Transaction Successful",
    "network_transaction_id": "<network id>",
    "message": "SUCCESSFUL",
    "amount": 10.5,
    "currency_code": "GHS",
    "customer_number": "233244000001",
    "reference": "Order 1",
    "timestamp": "2026-01-01T09:00:01.000Z",
}
BODIES: dict[str, dict[str, Any]] = {
    "trans": TRANS,
    "trans_bare": TRANS | {"trans_status": "000"},
    "flat": FLAT,
    "event": {
        "event_type": "payment_success",
        "transaction_id": "T1",
        "order_id": "Order 1",
        "status": "000",
        "status_desc": "Transaction Successful",
        "network_transaction_id": "<network id>",
        "amount": 10.5,
        "currency_code": "GHS",
        "customer_number": "233244000001",
        "reference": "Order 1",
        "timestamp": "2026-01-01T09:00:01.000Z",
    },
    "superset": FLAT | TRANS | {"trans_status": "000"},
}


def profile_of(body: dict[str, Any]) -> str:
    """Return the profile of a callback body, which its fields show."""
    (name,) = [
        name
        for name, example in BODIES.items()
        if body.keys() == example.keys()
        and ("/" in body.get("trans_status", "")) == ("/" in example.get("trans_status", ""))
    ]
    return name
