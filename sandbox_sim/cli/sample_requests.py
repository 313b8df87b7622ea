"""A well-formed request of every operation that `trigger` sends, and what makes it fail."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.adapters.ids import RandomIds


class Sample(NamedTuple):
    """Where an operation goes, the fields of its own, and those that make it fail."""

    path: str
    fields: Mapping[str, object]
    declined: Mapping[str, object]

    @property
    def is_payment(self) -> bool:
        """Whether there is a transaction, and a callback, rather than messages."""
        return not self.path.startswith("/sms/")


_DECLINED_NUMBER: Final = {"customer_number": "0244000009"}
_WALLET: Final = {"nw": "MTN", "payment_option": "MOM", "customer_number": "0244000001"}
_CARD: Final = {
    "trans_type": "CTM",
    "nw": "VIS",
    "payment_option": "CRD",
    "customer_number": "4111111111111111",
    "currency_code": "GHS",
    "currency_val": "10.50",
    "landing_page": "http://127.0.0.1:8080/thanks",
}
_BILL: Final = {"trans_type": "BLP", "nw": "ECG", "account_number": "200000000001"}
_AIRTIME: Final = {"trans_type": "ATP", "nw": "MTN", "customer_number": "0244000001"}
_SMS: Final = {
    "customer_number": "0244000001",
    "msg_body": "Your code is 1234",
    "sender_id": "Shop",
}
_BULK_SMS: Final = {
    "recipients": ["0244000001", "0244000002"],
    "msg_body": "Sale today",
    "sender_id": "Shop",
}

# A card has no last digit that declines it: what sandbox refuses is one that is no test card.
SAMPLES: Final[Mapping[str, Sample]] = MappingProxyType(
    {
        "collect": Sample("/make_payment", {"trans_type": "CTM", **_WALLET}, _DECLINED_NUMBER),
        "card": Sample("/make_payment", _CARD, {"customer_number": "4000000000000002"}),
        "deposit": Sample("/make_payment", {"trans_type": "DTTW", **_WALLET}, _DECLINED_NUMBER),
        "payout": Sample("/make_payment", {"trans_type": "MTC", **_WALLET}, _DECLINED_NUMBER),
        "bill": Sample("/pay_bill", _BILL, {"account_number": "200000000009"}),
        "airtime": Sample("/send_airtime", _AIRTIME, _DECLINED_NUMBER),
        "sms": Sample("/sms/send", _SMS, _DECLINED_NUMBER),
        "bulk-sms": Sample("/sms/bulk", _BULK_SMS, {"recipients": ["0244000001", "0244000009"]}),
    }
)


def body_of(sample: Sample, service_id: int, callback_url: str, *, fail: bool) -> dict[str, object]:
    """The body of a request; a payment has a `transaction_id` that none had before."""
    own = {**sample.fields, **(sample.declined if fail else {})}
    if not sample.is_payment:
        return {"service_id": service_id, **own}
    return {
        "service_id": service_id,
        "reference": "Order 1001",
        "transaction_id": f"TRIGGER-{RandomIds().record_id()[:8]}",
        "amount": 10.5,
        **own,
        "nickname": "Ama Mensah",
        "callback_url": callback_url,
        "request_time": SystemClock().now().strftime("%Y-%m-%d %H:%M:%S"),
    }
