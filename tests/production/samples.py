"""One attempt and the reports about it; keyword arguments replace their fields."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sandbox_sim.operations import Operation
from sandbox_sim.records.attempts import Attempt
from sandbox_sim.records.reports import Echo, Outcome, Report, Source
from tests import live_records

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def attempt(operation: Operation = Operation.COLLECT, **fields: Any) -> Attempt:
    """An attempt that was saved at noon and whose request went out once."""
    of = {"network_transaction_id": "12345678901", "reference": "R1", "created_at": NOON}
    return live_records.attempt(**{**of, "operation": operation, **fields})


def report(
    outcome: Outcome, source: Source = Source.STATUS, echo: Echo | None = None, **fields: Any
) -> Report:
    """A report that repeats the saved reference, amount and currency."""
    full = Echo("R1", Decimal("10.5"), "GHS")
    return Report(outcome, source, full if echo is None else echo, **fields)
