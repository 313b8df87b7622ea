"""The read-only records of tests: callbacks, deliveries, payments, SMS and requests.

They have no slots: with them, Python raises an obscure `TypeError` where a test sets a property or
an unknown field.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, Self

from sandbox_sim.records import callbacks, inbox, journal, messages, transactions
from sandbox_sim.records.callbacks import DeliveryAttempt
from sandbox_sim.records.inbox import InboxMessage
from sandbox_sim.records.journal import JournalEntry
from sandbox_sim.records.listing import FieldValues
from sandbox_sim.records.transactions import Status, StatusChange
from sandbox_sim.values.json_text import compact, parse_json


def _arguments(view: Mapping[str, Any], kind: type, **others: object) -> dict[str, Any]:
    """The arguments for a record of this kind: fields of the view, and `others`."""
    shared = (each for each in fields(kind) if each.name not in others)
    return {**others, **{each.name: _parse_time(view[each.name], each.type) for each in shared}}


def _parse_time(value: Any, kind: object) -> Any:
    is_time = kind is datetime or kind == datetime | None
    return datetime.fromisoformat(value) if is_time and value is not None else value


@dataclass(frozen=True)
class Callback:
    """A callback to the application under test.

    status: 000, 001, 002 or 003, from the field of the profile.
    content: the bytes of the body; pass it with `headers` to the test client of a web framework.
    state: pending, retrying, delivered, failed or dropped.
    unacknowledged: whether it was attempted and not acknowledged.
    """

    noun: ClassVar = "callback"
    columns: ClassVar = ("transaction_id", "status", "amount", "state", "url")
    values: ClassVar[Mapping[str, FieldValues]] = {
        "status": transactions.STATUS_VALUES,
        **callbacks.FIELD_VALUES,
    }

    id: str
    transaction_id: str
    network_transaction_id: str
    url: str
    profile: str
    content: bytes
    headers: dict[str, str]
    signature: str | None
    state: str
    unacknowledged: bool
    created_at: datetime
    attempts: tuple[DeliveryAttempt, ...]

    @classmethod
    def from_record(cls, found: callbacks.CallbackRecord) -> Self:
        """From a callback of the store."""
        view = cls.from_view(callbacks.shown(found))
        return replace(view, transaction_id=found.transaction_id, content=found.body.encode())

    @classmethod
    def from_view(cls, view: Mapping[str, Any]) -> Self:
        """From a callback of the control API."""
        signature = view["signature"]
        signed = {callbacks.SIGNATURE_HEADER: signature} if signature else {}
        converted = {
            "content": compact(view["body"]).encode(),
            "headers": {"Content-Type": "application/json", **signed},
            "attempts": tuple(
                DeliveryAttempt(
                    **{
                        **each,
                        "at": datetime.fromisoformat(each["at"]),
                        "next_attempt_at": _parse_time(each["next_attempt_at"], datetime),
                    }
                )
                for each in view["attempts"]
            ),
        }
        return cls(**_arguments(view, cls, **converted))

    @property
    def body(self) -> dict[str, Any]:
        """The parsed `content`."""
        document: dict[str, Any] = json.loads(self.content)
        return document

    @property
    def status(self) -> str:
        """The status of the payment, such as 000."""
        body = self.body
        return str(body.get("trans_status") or body["status"]).partition("/")[0]

    @property
    def amount(self) -> Decimal:
        """The amount; some profiles write it as a number, others as text."""
        return Decimal(str(self.body["amount"]))

    @property
    def customer_number(self) -> str:
        """The number of the customer, in the form with 233."""
        return str(self.body["customer_number"])


@dataclass(frozen=True)
class Delivery:
    """A request to an inbox of the gateway.

    body: parsed if it is JSON, else text. headers: names in lower case.
    signature: valid, invalid or missing.
    """

    noun: ClassVar = "delivery"
    columns: ClassVar = ("at", "method", "signature", "body")
    values: ClassVar = inbox.FIELD_VALUES

    at: datetime
    method: str
    headers: dict[str, str]
    body: Any
    signature: str

    @classmethod
    def from_record(cls, found: InboxMessage) -> Self:
        """From a message in an inbox."""
        return cls.from_view(inbox.shown(found))

    @classmethod
    def from_view(cls, view: Mapping[str, Any]) -> Self:
        """From a delivery of the control API."""
        return cls(**_arguments(view, cls, body=parse_json(view["body"], view["body"])))


@dataclass(frozen=True)
class Transaction:
    """A payment that was accepted or declined.

    customer_number: for a bill, the account number; card numbers are masked.
    timeline: each status with the time of its change, oldest first.
    """

    noun: ClassVar = "transaction"
    columns: ClassVar = ("transaction_id", "operation", "amount", "customer_number", "status")
    values: ClassVar = transactions.FIELD_VALUES

    transaction_id: str
    network_transaction_id: str
    operation: str
    amount: Decimal
    currency_code: str
    nw: str
    customer_number: str
    payment_mode: str
    reference: str
    callback_url: str
    status: str
    status_desc: str
    timeline: tuple[StatusChange, ...]
    expires_at: datetime

    @classmethod
    def from_record(cls, found: transactions.TransactionRecord) -> Self:
        """From a transaction of the store."""
        view = cls.from_view(transactions.shown(found, found.initiated_at))
        return replace(view, transaction_id=found.transaction_id, expires_at=found.expires_at)

    @classmethod
    def from_view(cls, view: Mapping[str, Any]) -> Self:
        """From a transaction of the control API."""
        changes = (
            StatusChange(Status(each["status"]), datetime.fromisoformat(each["at"]))
            for each in view["timeline"]
        )
        amount, party = Decimal(view["amount"]), view["party"]
        converted = {"amount": amount, "customer_number": party, "timeline": tuple(changes)}
        return cls(**_arguments(view, cls, **converted))


@dataclass(frozen=True)
class Sms:
    """An SMS.

    to: the phone number in the 233 form. status: ACKNOWLEDGED, SENT or REFUNDED. sent_at: None
    unless it was sent.
    """

    noun: ClassVar = "message"
    columns: ClassVar = ("to", "status", "sender_id", "text")
    values: ClassVar = messages.FIELD_VALUES

    processing_id: str
    batch_id: str | None
    to: str
    text: str
    sender_id: str
    status: str
    page_count: int
    created_at: datetime
    sent_at: datetime | None

    @classmethod
    def from_record(cls, found: messages.Message) -> Self:
        """From a message of the store."""
        return cls.from_view(messages.shown(found))

    @classmethod
    def from_view(cls, view: Mapping[str, Any]) -> Self:
        """From a message of the control API."""
        return cls(**_arguments(view, cls, to=view["customer_number"], text=view["message"]))


@dataclass(frozen=True)
class Request:
    """A request to the gateway and its answer.

    body, answer: parsed if JSON, else text; card numbers are masked.
    rule, why: the name of the rule that decided the answer, and the reason.
    mode: S or P, from the credentials; None if they are unknown.
    """

    noun: ClassVar = "request"
    columns: ClassVar = ("operation", "transaction_id", "response_code", "why")
    values: ClassVar[Mapping[str, FieldValues]] = {
        "operation": journal.FIELD_VALUES["operation"],
        "response_code": journal.FIELD_VALUES["response_code"],
        "code": journal.FIELD_VALUES["response_code"],
        "mode": journal.FIELD_VALUES["mode"],
    }

    id: str
    at: datetime
    operation: str | None
    transaction_id: str | None
    method: str
    path: str
    body: Any
    http_status: int
    response_code: str
    rule: str
    why: str
    warnings: tuple[str, ...]
    answer: Any
    mode: str | None

    @classmethod
    def from_record(cls, found: JournalEntry) -> Self:
        """From an entry of the journal."""
        return cls.from_view(journal.shown(found))

    @classmethod
    def from_view(cls, view: Mapping[str, Any]) -> Self:
        """From a request of the control API."""
        converted = {"body": view["request"], "warnings": tuple(view["warnings"])}
        return cls(**_arguments(view, cls, **converted))

    @property
    def code(self) -> str:
        """The same as `response_code`."""
        return self.response_code
