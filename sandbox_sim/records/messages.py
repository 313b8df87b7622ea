"""SMS messages: their requests, their states, and how history shows them.

Source: endpoint.9 to endpoint.11, states.sms, sandbox.1, sandbox.10, "limits", D22 to D26.

A message starts ACKNOWLEDGED. 800 ms later it becomes SENT (last digit 0 to 8) or REFUNDED (last
digit 9). In mode P it starts QUEUED, and its network decides: SENT, or FAILED and at once REFUNDED.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Final, Literal, NamedTuple, TypedDict

from sandbox_sim.records.listing import FieldValues, values_of
from sandbox_sim.values import msisdn
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.json_text import viewer
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.values.timestamps import Timestamp


class SmsStatus(StrEnum):
    """The statuses of an SMS; `code` is the one-letter form."""

    ACKNOWLEDGED = "ACKNOWLEDGED"
    QUEUED = "QUEUED"
    SENT = "SENT"
    FAILED = "FAILED"
    REFUNDED = "REFUNDED"

    @property
    def code(self) -> str:
        """A, Q, S, F or R."""
        return self.value[0]


STATUS_NAMES: Final[Mapping[str, SmsStatus]] = {
    name: status for status in SmsStatus for name in (status.value, status.code)
}


TRANSITIONS: Final[Mapping[SmsStatus, frozenset[SmsStatus]]] = {
    SmsStatus.ACKNOWLEDGED: frozenset({SmsStatus.SENT, SmsStatus.REFUNDED}),
    SmsStatus.QUEUED: frozenset({SmsStatus.SENT, SmsStatus.FAILED}),
    SmsStatus.SENT: frozenset(),
    SmsStatus.FAILED: frozenset({SmsStatus.REFUNDED}),
    SmsStatus.REFUNDED: frozenset(),
}


class IllegalSmsTransition(ValueError):
    """The message cannot go from its status to the requested one."""


@dataclass(frozen=True, slots=True)
class SmsRequest:
    """A send to one recipient or to many.

    recipients: the value of the request as it came, because `decide` checks its shape (389).
    """

    service_id: int
    recipients: object
    msg_body: str
    sender_id: str
    bulk: bool

    def redacted(self) -> "SmsRequest":
        """The send with its secrets masked, as it is stored (D38); measure the text before."""
        return replace(
            self, msg_body=redact_text(self.msg_body), sender_id=redact_text(self.sender_id)
        )


class Message(NamedTuple):
    """One SMS to one recipient.

    customer_number: in international form.
    """

    processing_id: str
    batch_id: str | None
    service_id: int
    customer_number: str
    message: str
    sender_id: str
    encoding: str
    char_count: int
    page_count: int
    status: SmsStatus
    created_at: datetime
    sent_at: datetime | None = None
    provider_code: str | None = None
    error_message: str | None = None
    mode: ServiceMode = ServiceMode.SANDBOX

    @property
    def units_charged(self) -> int:
        """One unit for each page."""
        return self.page_count

    def refunded(self, reason: str, at: datetime) -> "Message":
        """The message after its network did not send it, and its units were given back."""
        failed = self.with_status(SmsStatus.FAILED, at)._replace(error_message=reason)
        return failed.with_status(SmsStatus.REFUNDED, at)

    def with_status(self, to: SmsStatus, at: datetime) -> "Message":
        """The message in its next status.

        Raises `IllegalSmsTransition` where `TRANSITIONS` does not allow that status.
        """
        if to not in TRANSITIONS[self.status]:
            message = f"message {self.processing_id} is {self.status} and cannot become {to}"
            raise IllegalSmsTransition(message)
        sent_at = at if to is SmsStatus.SENT else None
        # A third faster than `_replace`, of which a bulk needs a thousand in one turn.
        rest = self[_SENT_AT + 1 :]
        return Message._make((*self[:_STATUS], to, self.created_at, sent_at, *rest))

    def settled(self, at: datetime) -> "Message":
        """The message after the 800 ms: REFUNDED for the last digit 9, else SENT (D25)."""
        declined = msisdn.is_declined(self.customer_number)
        return self.with_status(SmsStatus.REFUNDED if declined else SmsStatus.SENT, at)


_STATUS, _SENT_AT = map(Message._fields.index, ("status", "sent_at"))


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which messages of a service, newest first; dates are UTC days, both included (D26)."""

    service_id: int
    page: int = 1
    limit: int = 20
    status: SmsStatus | None = None
    batch_id: str | None = None
    start_date: date | None = None
    end_date: date | None = None
    mode: ServiceMode = ServiceMode.SANDBOX

    @property
    def offset(self) -> int:
        """How many newer messages come before the page."""
        return (self.page - 1) * self.limit

    @property
    def filtered(self) -> bool:
        """Whether a filter is set."""
        filters = (self.status, self.batch_id, self.start_date, self.end_date)
        return any(value is not None for value in filters)

    def matches(self, message: Message) -> bool:
        """Whether a message passes the filters."""
        day = message.created_at.date()
        return (
            self.status in {None, message.status}
            and self.batch_id in {None, message.batch_id}
            and (self.start_date is None or day >= self.start_date)
            and (self.end_date is None or day <= self.end_date)
        )


class HistoryItem(TypedDict):
    """One element of `response_data` of `sms/history`."""

    processing_id: str
    batch_id: Annotated[str | None, "null for a single send"]
    customer_number: Annotated[str, "the recipient, in international form"]
    message: Annotated[str, "the text"]
    sender_id: str
    char_count: int
    page_count: int
    units_charged: int
    status: Annotated[
        str,
        SmsStatus,
        "first ACKNOWLEDGED in mode S or QUEUED in mode P; then SENT, FAILED or REFUNDED",
    ]
    status_code: Annotated[str, tuple(status.code for status in SmsStatus)]
    provider_code: str | None
    error_message: str | None
    source: Literal["CLIENT"]
    source_code: Literal["C"]
    created_at: Timestamp
    sent_at: Annotated[str | None, "ISO 8601 in UTC; null until it is sent"]


FIELD_VALUES: Final[Mapping[str, FieldValues]] = {
    "status": values_of(SmsStatus),
    "mode": values_of(ServiceMode),
}


class _OfService(TypedDict):
    service_id: int


class MessageView(_OfService, HistoryItem):
    """A message as the control API shows it."""

    mode: Annotated[str, ServiceMode]


_item, _view = viewer(HistoryItem), viewer(MessageView)


def shown(message: Message) -> MessageView:
    """A message as the control API shows it: as the handset sees it, and whose it is."""
    return _view(message, **_source(message))


def history_item(message: Message) -> HistoryItem:
    """One element of `response_data` of `sms/history`."""
    return _item(message, **_source(message))


def _source(message: Message) -> dict[str, str]:
    return {"status_code": message.status.code, "source": "CLIENT", "source_code": "C"}
