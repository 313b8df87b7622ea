"""One well-formed payment, transaction and message; keyword arguments replace their fields."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sandbox_sim import operations
from sandbox_sim.operations import Operation
from sandbox_sim.records.messages import Message
from sandbox_sim.records.transactions import Payment, Status, TransactionRecord
from tests import sample_records

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

SETTLED = NOON + timedelta(seconds=1)


PAYMENTS = tuple(operations.PAYMENTS)

# The fields that turn a mobile money collection into a request of another operation.
_SHAPES: dict[Operation, dict[str, str]] = {
    Operation.CARD: {"nw": "VIS", "party": "4111111111111111", "payment_mode": "CRD"},
    Operation.BILL: {"nw": "ECG", "party": "200000000001", "payment_mode": "BLP"},
    Operation.AIRTIME: {"payment_mode": "ATP"},
}


def payment(operation: Operation = Operation.COLLECT, **fields: Any) -> Payment:
    """A payment that the sandbox accepts."""
    shape: dict[str, Any] = {**_SHAPES.get(operation, {}), **fields}
    plain = sample_records.transaction(operation=operation).payment
    return plain._replace(**{"callback_url": "http://127.0.0.1:9/callback", **shape})


def transaction(operation: Operation = Operation.COLLECT, **fields: Any) -> TransactionRecord:
    """The transaction of an accepted payment, pending since noon.

    `fields` replace fields of the transaction or of its payment.
    """
    of_payment = {name: fields.pop(name) for name in Payment._fields if name in fields}
    made = TransactionRecord(
        payment(operation, **of_payment).redacted(), "12345678901", "sandbox_key", NOON
    )
    return made._replace(**fields)


def settled(operation: Operation = Operation.COLLECT, **fields: Any) -> TransactionRecord:
    """The same transaction, successful a second later."""
    return transaction(operation, **fields).with_status(Status.SUCCESSFUL, SETTLED)


def message(**fields: Any) -> Message:
    """A single SMS, acknowledged at noon."""
    return sample_records.message("P1", **{"created_at": NOON, **fields})
