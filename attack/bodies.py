"""A valid body for each of the twelve operations, and its path."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

NOWHERE: Final = "http://127.0.0.1:9/callback"
_COMMON: Final = {
    "service_id": 55,
    "reference": "Order 1",
    "transaction_id": "T1",
    "amount": 10.5,
    "callback_url": NOWHERE,
    "request_time": "2026-01-01 09:00",
}
_PERSON: Final = {"customer_number": "0244000001", "nickname": "Ama"}
_MOBILE: Final = {**_COMMON, **_PERSON, "payment_option": "MOM"}
_SMS: Final = {"service_id": 55, "msg_body": "Your code is 1234", "sender_id": "Shop"}
_CARD: Final = {
    **_COMMON,
    "nickname": "Ama",
    "customer_number": "4111111111111111",
    "trans_type": "CTM",
    "payment_option": "CRD",
    "nw": "VIS",
    "currency_code": "GHS",
    "currency_val": "10.50",
    "landing_page": "http://127.0.0.1:9/thanks",
}
_HISTORY: Final = {
    "service_id": 55,
    "page": 1,
    "limit": 20,
    "status": "SENT",
    "batch_id": "none",
    "start_date": "2026-01-01",
    "end_date": "2026-12-31",
}


class Operation(NamedTuple):
    """A path, and a body that the gateway accepts there."""

    path: str
    body: Mapping[str, Any]


OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        "collection": Operation("/make_payment", {**_MOBILE, "trans_type": "CTM", "nw": "MTN"}),
        "card": Operation("/make_payment", _CARD),
        "deposit": Operation("/make_payment", {**_MOBILE, "trans_type": "DTTW", "nw": "VOD"}),
        "payout": Operation("/make_payment", {**_MOBILE, "trans_type": "MTC", "nw": "AIR"}),
        "bill": Operation(
            "/pay_bill",
            {**_COMMON, "trans_type": "BLP", "nw": "ECG", "account_number": "200000000001"},
        ),
        "airtime": Operation(
            "/send_airtime",
            {**_COMMON, "trans_type": "ATP", "nw": "MTN", "customer_number": "0244000001"},
        ),
        "status": Operation("/get_transaction_status", {"service_id": 55, "transaction_id": "T1"}),
        "balance": Operation(
            "/get_account_balance", {"service_id": 55, "request_time": "2026-01-01 09:00"}
        ),
        "sms": Operation("/sms/send", {**_SMS, "customer_number": "0244000001"}),
        "bulk": Operation("/sms/bulk", {**_SMS, "recipients": ["0244000001", "233200000002"]}),
        "history": Operation("/sms/history", _HISTORY),
        "sms-balance": Operation("/sms/balance", {"service_id": 55}),
    }
)
PATHS: Final = tuple(dict.fromkeys(each.path for each in OPERATIONS.values()))


def collection(transaction_id: str, **fields: object) -> dict[str, Any]:
    """The body of a mobile collection; `fields` replace its own."""
    return {**OPERATIONS["collection"].body, "transaction_id": transaction_id, **fields}
