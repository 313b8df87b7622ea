"""The bodies of the interface's answers and callbacks, for the OpenAPI document.

The tests check every answer and every callback against these. Source: docs/interface.md.
"""

from typing import Annotated, Literal, TypedDict

from sandbox_sim.records.callbacks import Profile
from sandbox_sim.records.messages import HistoryItem, SmsStatus
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.timestamps import Timestamp

_Encoding = Literal["GSM", "UNICODE"]
_StatusLetter = Annotated[str, tuple(status.code for status in SmsStatus)]


class Said(TypedDict):
    """The field that every answer has beside `response_code`."""

    response_message: str


class PaymentAccepted(Said):
    """The payment is accepted and pending; its callback follows."""

    response_code: Literal["202"]


class MobilePayoutAccepted(PaymentAccepted):
    """The 202 of a mobile payout (sandbox.5)."""

    status: Literal["success"]


class CardAccepted(Said):
    """The customer pays on the hosted page."""

    response_code: Literal["000"]
    redirect_url: Annotated[str, "the address of the hosted payment page"]


class StatusRecord(TypedDict):
    """The status of a transaction."""

    network_transaction_id: str
    status_desc: str
    transaction_id: str
    status: Annotated[str, Status]
    message: str


class StatusFound(Said):
    """The transaction is known."""

    response_code: Literal["000"]
    response_data: StatusRecord


class BalanceRecord(TypedDict):
    """The balances of a service, in its base currency and in SMS units."""

    payout_balance: float
    collection_balance: float
    sms_balance: float
    airtime_balance: float


class BalanceFound(Said):
    """The balances of the service."""

    response_code: Literal["000"]
    response_data: BalanceRecord


class SmsSendRecord(TypedDict):
    """One SMS that was accepted."""

    processing_id: str
    batch_id: None
    status: Annotated[str, SmsStatus]
    status_code: _StatusLetter
    page_count: int
    units_charged: int
    char_count: int
    encoding: _Encoding
    sms_balance: Annotated[int, "the units that are left"]


class SmsAccepted(Said):
    """The SMS is accepted and charged."""

    response_code: Literal["370"]
    response_data: SmsSendRecord


class SmsBulkRecord(TypedDict):
    """A bulk SMS that was accepted."""

    batch_id: str
    total_recipients: int
    page_count: int
    units_per_recipient: int
    total_units_charged: int
    sms_balance: Annotated[int, "the units that are left"]
    status: Annotated[str, SmsStatus]
    status_code: _StatusLetter
    encoding: _Encoding


class BulkSmsAccepted(Said):
    """The SMS to all recipients are accepted and charged."""

    response_code: Literal["370"]
    response_data: SmsBulkRecord


class Pagination(TypedDict):
    """Where a page of the history stands."""

    total_no_of_records: int
    total_pages: int
    current_page: int
    items_per_page: int


class HistoryFound(Said):
    """A page of the SMS of the service, newest first."""

    response_code: Literal["393"]
    response_data: list[HistoryItem]
    pagination: Pagination


class SmsBalanceRecord(TypedDict):
    """The SMS units of a service."""

    entity_service_id: int
    sms_balance: int
    last_updated: Timestamp


class SmsBalanceFound(Said):
    """The SMS units of the service."""

    response_code: Literal["388"]
    response_data: SmsBalanceRecord


# --- Callbacks, one body for each profile (D27) ---------------------------------------------------


class TransCallback(TypedDict):
    """The body of the profiles `trans` and `trans_bare`, which differ in `trans_status`."""

    trans_ref: Annotated[str, "the client's transaction_id"]
    trans_id: Annotated[str, "the network_transaction_id"]
    trans_status: Annotated[str, "such as 000/SUCCESS; the bare code in the profile trans_bare"]
    message: str
    customer_number: Annotated[str, "international form, the bill account, or the masked card"]
    nw: str
    payment_mode: str
    amount: Annotated[str, "the shortest plain decimal"]


class _Notification(TypedDict):
    transaction_id: str
    status: Annotated[str, Status]
    status_desc: str
    network_transaction_id: str
    amount: float
    currency_code: str
    customer_number: str
    reference: str
    timestamp: Timestamp


class FlatCallback(_Notification):
    """The body of the profile `flat`."""

    message: str


class EventCallback(_Notification):
    """The body of the profile `event`, which the storefront plugin reads."""

    event_type: Literal[
        "payment_success", "payment_failure", "payment_pending", "payment_cancelled"
    ]
    order_id: Annotated[str, "the reference of the payment"]


class SupersetCallback(TransCallback):
    """The body of the profile `superset`: `trans_bare` and `flat` in one."""

    transaction_id: str
    status: Annotated[str, Status]
    status_desc: str
    network_transaction_id: str
    currency_code: str
    reference: str
    timestamp: Timestamp


CALLBACK_MODELS = {
    Profile.TRANS: TransCallback,
    Profile.TRANS_BARE: TransCallback,
    Profile.FLAT: FlatCallback,
    Profile.EVENT: EventCallback,
    Profile.SUPERSET: SupersetCallback,
}
