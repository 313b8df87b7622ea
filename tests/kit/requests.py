"""A valid request of each operation, its credentials, and the shape that every answer has."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

KEY, SECRET = "sandbox_key", "sandbox_secret"
# The interface's response codes, and 219 of D14.
CODES: Final = frozenset(
    {
        *("000", "202", "370", "388", "393", "100", "400", "401", "402", "403", "404", "429"),
        *("500", "216", "219", "237", "371", "389", "390", "015", "016", "019", "027", "S002"),
    }
)

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


def basic(client_key: str = KEY, secret_key: str = SECRET) -> str:
    """The value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{client_key}:{secret_key}".encode()).decode()


def collection(transaction_id: str = "T1", **fields: object) -> dict[str, Any]:
    """The body of a mobile money collection; `fields` replace its own."""
    return {**OPERATIONS["collection"].body, "transaction_id": transaction_id, **fields}


def strict_json(text: str | bytes) -> Any:
    """Parse JSON as RFC 8259 has it: UTF-8, and neither NaN nor Infinity."""

    def refuse(constant: str) -> object:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text.decode() if isinstance(text, bytes) else text, parse_constant=refuse)


def shape_problem(
    status: int, headers: Mapping[str, str], raw: bytes, path: str = ""
) -> str | None:
    """What is wrong with an answer, which may refuse a bad request; None if it is valid.

    headers: their names in lower case. path: of the request, if it is known.
    """
    if not 200 <= status < 500:
        return f"HTTP status {status}"
    try:
        body = strict_json(raw)
    except ValueError as error:
        return f"the body is not valid JSON: {error}"
    if not isinstance(body, dict):
        return "the body is not an object"
    code, message = body.get("response_code"), body.get("response_message")
    if code not in CODES - {"500"}:
        return f"response_code is {code!r}"
    if not isinstance(message, str) or not message.strip():
        return f"response_message is {message!r}"
    if (status == 202) != (code == "202"):
        return f"HTTP status {status} with response_code {code}"
    if path.startswith("/sms/") and status != 200:
        return f"HTTP status {status} on an SMS path"
    if not headers.get("x-sandbox-rule"):
        return "no X-Sandbox-Rule"
    return None
