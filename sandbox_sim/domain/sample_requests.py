"""A valid request of every operation that does something, and the values that make it fail."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Sample(NamedTuple):
    """The path of an operation, its fields, and the fields that make it fail."""

    path: str
    fields: Mapping[str, object]
    declined: Mapping[str, object]

    @property
    def is_payment(self) -> bool:
        """Whether the operation makes a transaction and a callback; SMS make messages."""
        return not self.path.startswith("/sms/")

    @property
    def is_card(self) -> bool:
        """Whether it is a card payment, which also needs a `landing_page`."""
        return self.fields.get("payment_option") == "CRD"


_DECLINED_NUMBER: Final = {"customer_number": "0244000009"}
_WALLET: Final = {"nw": "MTN", "payment_option": "MOM", "customer_number": "0244000001"}
_CARD: Final = {
    "trans_type": "CTM",
    "nw": "VIS",
    "payment_option": "CRD",
    "customer_number": "4111111111111111",
    "currency_code": "GHS",
    "currency_val": "10.50",
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

# The last digit of a card does not decline it; sandbox rejects a card that is no test card.
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
