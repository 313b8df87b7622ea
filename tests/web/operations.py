"""A valid body of each operation, for tests that make it invalid."""

from dataclasses import dataclass
from typing import Any

REQUEST_TIME = "2026-01-01 09:00"

_COMMON = {
    "service_id": 55,
    "reference": "Order 1",
    "transaction_id": "T1",
    "amount": 10.5,
    "callback_url": "http://127.0.0.1:9/callbacks",
    "request_time": REQUEST_TIME,
}
_PERSON = {"customer_number": "0244000001", "nickname": "Ama"}
_SMS = {"service_id": 55, "msg_body": "Your code is 1234", "sender_id": "Shop"}


@dataclass(frozen=True)
class Operation:
    """One of the twelve operations: its path, a valid body, and the response code for this body."""

    path: str
    body: dict[str, Any]
    code: str


OPERATIONS = {
    "collection": Operation(
        "/make_payment",
        {**_COMMON, **_PERSON, "trans_type": "CTM", "payment_option": "MOM", "nw": "MTN"},
        "202",
    ),
    "card": Operation(
        "/make_payment",
        {
            **_COMMON,
            "nickname": "Ama",
            "customer_number": "4111111111111111",
            "trans_type": "CTM",
            "payment_option": "CRD",
            "nw": "VIS",
            "currency_code": "GHS",
            "currency_val": "10.50",
            "landing_page": "http://127.0.0.1:9/thanks",
        },
        "000",
    ),
    "deposit": Operation(
        "/make_payment",
        {**_COMMON, **_PERSON, "trans_type": "DTTW", "payment_option": "MOM", "nw": "VOD"},
        "202",
    ),
    "payout": Operation(
        "/make_payment",
        {**_COMMON, **_PERSON, "trans_type": "MTC", "payment_option": "MOM", "nw": "AIR"},
        "202",
    ),
    "bill": Operation(
        "/pay_bill",
        {**_COMMON, "trans_type": "BLP", "nw": "ECG", "account_number": "200000000001"},
        "202",
    ),
    "airtime": Operation(
        "/send_airtime",
        {**_COMMON, "trans_type": "ATP", "nw": "MTN", "customer_number": "0244000001"},
        "202",
    ),
    "status": Operation(
        "/get_transaction_status", {"service_id": 55, "transaction_id": "T1"}, "027"
    ),
    "balance": Operation(
        "/get_account_balance", {"service_id": 55, "request_time": REQUEST_TIME}, "000"
    ),
    "sms": Operation("/sms/send", {**_SMS, "customer_number": "0244000001"}, "370"),
    "bulk": Operation("/sms/bulk", {**_SMS, "recipients": ["0244000001", "233200000002"]}, "370"),
    "history": Operation(
        "/sms/history",
        {
            "service_id": 55,
            "page": 1,
            "limit": 20,
            "status": "SENT",
            "batch_id": "none",
            "start_date": "2026-01-01",
            "end_date": "2026-12-31",
        },
        "393",
    ),
    "sms-balance": Operation("/sms/balance", {"service_id": 55}, "388"),
}
PATHS = tuple(dict.fromkeys(operation.path for operation in OPERATIONS.values()))
