"""The requests that the dashboard offers to send, with the magic values that change an outcome."""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from sandbox_sim.domain.sample_requests import SAMPLES
from sandbox_sim.web.pages.formats import operation_name
from sandbox_sim.web.pages.texts import Texts

# The text of a value, and the fields that it changes.
Magic = tuple[str, Mapping[str, object]]

_QUERIES: Final = {
    "status": ("/get_transaction_status", {"transaction_id": ""}),
    "balance": ("/get_account_balance", {"request_time": ""}),
    "sms-history": ("/sms/history", {}),
    "sms-balance": ("/sms/balance", {}),
}
# Fields that change the outcome of a payment to a phone number, and what comes then.
_MAGIC: Final[tuple[Magic, ...]] = (
    ("send.settles", {"customer_number": "0244000001"}),
    ("send.declined", {"customer_number": "0244000009"}),
    ("send.not_allowlisted", {"customer_number": "0540000000"}),
    ("send.above_cap", {"amount": 10001}),
    ("send.bad_request", {"amount": "10"}),
)
_MAGIC_SMS: Final[tuple[Magic, ...]] = (
    ("send.sms_sent", {"customer_number": "0244000001"}),
    ("send.sms_refunded", {"customer_number": "0244000009"}),
    ("send.sms_not_allowlisted", {"customer_number": "0540000000"}),
    ("send.sms_no_units", {"service_id": 59}),
)


def samples_json(url: str, text: Texts) -> str:
    """The samples for static/send.js, as JSON. url: the address of the gateway.

    The script fills in the empty fields: a new `transaction_id`, and `request_time`.
    """
    samples = []
    for name, sample in SAMPLES.items():
        fields: dict[str, object] = {"service_id": 55}
        if sample.is_payment:
            fields |= {"reference": "Order 1001", "transaction_id": "", "amount": 10.5}
        fields |= sample.fields
        if sample.is_payment:
            inbox = f"{url}/_sandbox/inbox"
            fields |= {"nickname": "Ama Mensah", "callback_url": f"{inbox}/dashboard"}
            fields |= {"request_time": ""}
            fields |= {"landing_page": f"{inbox}/thanks"} if sample.is_card else {}
        wallet = "customer_number" in sample.fields and not sample.is_card
        magic: Iterable[Magic]
        if wallet:
            magic = _MAGIC if sample.is_payment else _MAGIC_SMS
        else:
            magic = (("send.succeeds", {k: sample.fields[k] for k in sample.declined}),
                     ("send.fails", sample.declined))  # fmt: skip
        samples.append(_sample(text, name, sample.path, fields, magic))
    for name, (path, own) in _QUERIES.items():
        samples.append(_sample(text, name, path, {"service_id": 55, **own}, ()))
    return json.dumps(samples)


def _sample(
    text: Texts, name: str, path: str, body: object, magic: Iterable[Magic]
) -> dict[str, object]:
    return {
        "operation": name,
        "name": operation_name(text, name),
        "path": path,
        "body": body,
        "magic": [(text(key), values) for key, values in magic],
    }
