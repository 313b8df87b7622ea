"""The environment of an adapter in tests: recorded events, and a stopped clock."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import NetworkEnvironment, Notification, StatusQuery, SubmitRequest
from sandbox_sim.records.exchanges import Exchange, MessagePart
from sandbox_sim.testing.network_contract import Signature


@dataclass
class KeptEvents:
    """Records the events that an adapter reports."""

    exchanges: list[Exchange] = field(default_factory=list)
    notifications: list[Notification] = field(default_factory=list)
    parts: list[MessagePart] = field(default_factory=list)

    def exchanged(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)

    async def notified(self, notification: Notification) -> None:
        self.notifications.append(notification)

    async def part_taken(self, attempt_id: str, number: int, total: int, network_id: str) -> None:
        self.parts.append(MessagePart("testnet", attempt_id, number, total, network_id))


def environment(timeout_s: float = 5) -> NetworkEnvironment:
    return NetworkEnvironment(
        "testnet", VirtualClock(), RandomIds(seed=1), timedelta(seconds=timeout_s)
    )


_SHAPES: dict[Operation, dict[str, str]] = {
    Operation.CARD: {
        "nw": "CRD",
        "party": "",
        "payment_mode": "CRD",
        "currency_val": "10.50",
        "landing_page": "https://shop.example/thanks",
    },
    Operation.BILL: {"nw": "ECG", "party": "200000000001", "payment_mode": "BLP"},
    Operation.AIRTIME: {"payment_mode": "ATP"},
    Operation.SMS: {"nw": "", "party": "233244000001", "text": "Hello", "sender_id": "Shop"},
}


def request(operation: Operation = Operation.COLLECT, **fields: Any) -> SubmitRequest:
    """A request that every network takes; keyword arguments replace its fields."""
    values: dict[str, Any] = {
        "attempt_id": "A1",
        "reference": "R1",
        "transaction_id": "T1",
        "service_id": 55,
        "operation": operation,
        "amount": Decimal("10.50"),
        "currency": "SMS" if operation is Operation.SMS else "GHS",
        "nw": "MTN",
        "party": "0244000001",
        "payment_mode": "MOM",
        "description": "Order 1",
        "request_time": "2026-01-01 09:00",
        "notification_url": "http://127.0.0.1:9/_networks/testnet/A1",
        "nickname": "Ama",
    }
    return SubmitRequest(**{**values, **_SHAPES.get(operation, {}), **fields})


def signature_of(
    kind: Signature, sign: Callable[[bytes, str], str], key: str, body: bytes, rewritten: bytes
) -> str:
    """The signature of this kind over a body; rewritten: the same document in other bytes."""
    good = sign(body, key)
    return {
        Signature.GOOD: good,
        Signature.ABSENT: "",
        Signature.WRONG: "0" * len(good),
        Signature.OTHER_KEY: sign(body, "another key"),
        Signature.REWRITTEN: sign(rewritten, key),
    }[kind]


def query(asked: SubmitRequest | None = None) -> StatusQuery:
    """The status query for a request."""
    about = asked or request()
    return StatusQuery(
        about.attempt_id, about.reference, about.transaction_id, about.service_id, about.operation
    )
