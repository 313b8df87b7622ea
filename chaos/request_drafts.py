"""Requests to send: the body of each, the codes that the rules allow, and how it is recorded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.facts import Asked, Facts, History, Message, Payment, Send, Status

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Draft:
    """A request that changes nothing: a balance, an account."""

    path: str
    body: Body
    expected: frozenset[str]

    @property
    def service_id(self) -> int:
        """The service of the request."""
        service_id: int = self.body["service_id"]
        return service_id

    def keep(self, facts: Facts, asked: Asked, _answer: Body) -> None:
        """Record the request and its answer."""
        facts.queries.append(asked)


@dataclass(frozen=True, slots=True)
class PaymentDraft(Draft):
    """A payment of any operation."""

    @property
    def transaction_id(self) -> str:
        """The `transaction_id`, which is unique in the run."""
        transaction_id: str = self.body["transaction_id"]
        return transaction_id

    def keep(self, facts: Facts, asked: Asked, _answer: Body) -> None:
        """Record the payment with its code; the rest of the answer is not needed."""
        facts.payments.append(Payment(asked, self.service_id, self.transaction_id))


@dataclass(frozen=True, slots=True)
class SendDraft(Draft):
    """A single SMS, or a bulk. units: the SMS units that each recipient costs."""

    units: int = 1

    def keep(self, facts: Facts, asked: Asked, answer: Body) -> None:
        """Record the send with the reference that the history must have."""
        bulk = "recipients" in self.body
        to = self.body["recipients"] if bulk else [self.body["customer_number"]]
        record = answer.get("response_data", {})
        facts.sends.append(
            Send(
                asked,
                self.service_id,
                self.body["msg_body"],
                tuple(map(international, to)),
                bulk,
                self.units,
                record.get("batch_id" if bulk else "processing_id"),
            )
        )


@dataclass(frozen=True, slots=True)
class StatusDraft(Draft):
    """A status query."""

    codes: ClassVar[frozenset[str]] = frozenset({"000", "027"})

    def keep(self, facts: Facts, asked: Asked, answer: Body) -> None:
        """Record the status, if the transaction was found."""
        facts.statuses.append(status_of(asked, self.body["transaction_id"], answer))


@dataclass(frozen=True, slots=True)
class HistoryDraft(Draft):
    """A page of the history."""

    def keep(self, facts: Facts, asked: Asked, answer: Body) -> None:
        """Record every message of the page."""
        facts.histories.append(History(asked, self.service_id, messages_of(answer)))


def status_of(asked: Asked, transaction_id: str, answer: Body) -> Status:
    """The status in an answer to `get_transaction_status`."""
    record = answer.get("response_data", {})
    network_id = record.get("network_transaction_id")
    return Status(asked, transaction_id, record.get("status"), network_id)


def messages_of(answer: Body) -> tuple[Message, ...]:
    """The items of an answer to `sms/history`."""
    return tuple(
        Message(
            item["processing_id"],
            item["batch_id"],
            item["customer_number"],
            item["message"],
            item["status"],
            item["units_charged"],
        )
        for item in answer.get("response_data", ())
    )


def international(number: str) -> str:
    """The 233 form of a listed number."""
    return number if number.startswith("233") else f"233{number[1:]}"
