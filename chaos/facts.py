"""What was seen from outside: the load records these facts, and the proof reads them.

This module holds data only. All times are seconds of one monotonic clock, so they can be compared.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

# After an answer of HTTP 500 the request may have been processed or not, as without an answer.
FAULT = "500"
ACCEPTED = frozenset({"202", "000"})
SENT = "370"
EVERY_SERVER = -1


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, the codes that the rules allow for it, and the code that came.

    code: None where the connection broke before an answer was whole; `problem` says how.
    """

    server: int
    path: str
    began: float
    ended: float
    expected: frozenset[str]
    code: str | None
    problem: str = ""

    @property
    def known(self) -> bool:
        """Whether the answer says if the request was processed."""
        return self.code is not None and self.code != FAULT


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment of any operation, with a unique `transaction_id`."""

    asked: Asked
    service_id: int
    transaction_id: str

    @property
    def accepted(self) -> bool:
        """Whether a callback must come."""
        return self.asked.code in ACCEPTED


@dataclass(frozen=True, slots=True)
class Send:
    """An SMS to one or many recipients, with a unique text that identifies its messages.

    recipients: in 233 form, as the history has them.
    units: charged for each recipient.
    reference: the `processing_id` or `batch_id` that was answered.
    """

    asked: Asked
    service_id: int
    text: str
    recipients: tuple[str, ...]
    bulk: bool
    units: int
    reference: str | None = None

    @property
    def acknowledged(self) -> bool:
        """Whether the server acknowledged the send."""
        return self.asked.code == SENT


@dataclass(frozen=True, slots=True)
class Status:
    """One answer to `get_transaction_status`; `status` is None if it was not found."""

    asked: Asked
    transaction_id: str
    status: str | None = None
    network_id: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One item of a history."""

    processing_id: str
    batch_id: str | None
    customer_number: str
    text: str
    status: str
    units: int


@dataclass(frozen=True, slots=True)
class History:
    """One answer to `sms/history`."""

    asked: Asked
    service_id: int
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivery:
    """One callback that arrived.

    genuine: signature, body and address are as they must be.
    answered: the HTTP status that the receiver gave it.
    """

    at: float
    trans_ref: str
    trans_id: str
    trans_status: str
    genuine: bool
    answered: int

    @property
    def taken(self) -> bool:
        """Whether the receiver acknowledged it, so that it need not come again."""
        return 200 <= self.answered < 300


@dataclass(frozen=True, slots=True)
class Outage:
    """A time without one server, or without all, from the kill to the ready line."""

    server: int
    began: float
    ended: float = math.inf

    def touches(self, server: int, began: float, ended: float) -> bool:
        """Whether the outage explains why this server did not answer in this time."""
        here = self.server in {server, EVERY_SERVER}
        return here and self.began <= ended and self.ended >= began


@dataclass(slots=True)
class Final:
    """The state of the gateway after everything is settled.

    histories: all messages of each service, and the total that its pages name.
    """

    histories: dict[int, tuple[list[Message], int]] = field(default_factory=dict)
    balances: dict[int, int] = field(default_factory=dict)
    statuses: dict[str, Status] = field(default_factory=dict)


@dataclass(slots=True)
class Facts:
    """Everything that was seen in a run.

    refused: requests that were not sent, because no connection could be made.
    complaints: servers that exited by themselves, and errors in their logs.
    """

    payments: list[Payment] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    histories: list[History] = field(default_factory=list)
    queries: list[Asked] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    refused: int = 0
    final: Final = field(default_factory=Final)

    @property
    def acknowledged(self) -> int:
        """How many payments and sends the servers have acknowledged."""
        payments = sum(1 for payment in self.payments if payment.accepted)
        return payments + sum(1 for send in self.sends if send.acknowledged)

    def asked(self) -> Iterator[Asked]:
        """Every request of the load that was sent."""
        yield from (payment.asked for payment in self.payments)
        yield from (send.asked for send in self.sends)
        yield from (status.asked for status in self.statuses)
        yield from (history.asked for history in self.histories)
        yield from self.queries

    def arrivals(self) -> dict[str, list[Delivery]]:
        """The callbacks that arrived, by `trans_ref`, in their order."""
        by_ref: dict[str, list[Delivery]] = {}
        for delivery in self.deliveries:
            by_ref.setdefault(delivery.trans_ref, []).append(delivery)
        return by_ref

    def codes(self) -> Counter[str]:
        """How often each code came."""
        return Counter(asked.code or "no answer" for asked in self.asked())


def opening_units(service_id: int) -> int:
    """The SMS units of a new service (sandbox.10, D22)."""
    return 0 if service_id % 10 == 9 else 500
